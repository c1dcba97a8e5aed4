#include "xsa/text/tokenizer.h"

#include <filesystem>

#include "xsa/base/error.h"
#include "xsa/base/suggest.h"
#include "xsa/text/bpe_tokenizer.h"
#include "xsa/text/byte_tokenizer.h"
#include "xsa/text/gpt2_tokenizer.h"

namespace xsa::text {

std::vector<std::string> tokenizer_names() { return {"byte", "gpt2"}; }

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& name) {
  if (name == "byte") return std::make_unique<ByteTokenizer>();
  if (name == "gpt2") return std::make_unique<Gpt2Tokenizer>(gpt2_vocabulary_folder());
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored)) return read_tokenizer(name);
  std::string known;
  for (const std::string& each : tokenizer_names()) known += (known.empty() ? "" : ", ") + each;
  throw UsageError(cat("tokenizer: expected one of ", known,
                       ", or a folder with a vocabulary, got '", name, "'",
                       did_you_mean(name, tokenizer_names())));
}

void encode(const Tokenizer& tokenizer, std::string_view text, std::vector<Token>& ids,
            const Parallel& parallel) {
  constexpr std::size_t kPart = std::size_t{1} << 17;
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    // A part without a border grows until it has one: the rest of a text always is one.
    std::size_t size = 0;
    for (std::size_t reach = kPart; size == 0; reach *= 2)
      size = reach < text.size() ? tokenizer.safe_prefix(text.substr(0, reach)) : text.size();
    parts.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  if (parts.size() < 2 || parallel.workers == 1) {
    for (const std::string_view part : parts) tokenizer.encode(part, ids);
    return;
  }
  std::vector<std::vector<Token>> results(parts.size());
  const auto count = static_cast<std::int64_t>(parts.size());
  parallel.run(count, [&](std::int64_t i, std::int64_t) {
    const auto index = static_cast<std::size_t>(i);
    tokenizer.encode(parts[index], results[index]);
  });
  std::size_t total = ids.size();
  for (const auto& each : results) total += each.size();
  ids.reserve(total);
  for (const auto& each : results) ids.insert(ids.end(), each.begin(), each.end());
}

}  // namespace xsa::text
