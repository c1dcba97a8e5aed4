// Text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "xsa/base/parallel.h"

namespace xsa::text {

using Token = std::uint32_t;

/// A token that no text becomes by itself, and how it is written.
struct SpecialToken {
  std::string text;
  Token id;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Its name in recipes and manifests: "byte", "gpt2", or a folder's.
  virtual std::string name() const = 0;
  /// Equal where the same text becomes the same ids, wherever the vocabulary lies.
  virtual std::string identity() const { return name(); }
  /// Ids are in [0, vocabulary_size()).
  virtual std::int64_t vocabulary_size() const = 0;
  /// Placed between documents by the data preparation; never produced by encode.
  virtual Token end_of_text() const = 0;
  /// What a model sees where it is to begin a text: the vocabulary's token for that, where it has
  /// one of its own.
  virtual Token begin_of_text() const { return end_of_text(); }
  /// What evaluation reads as tokens where a text has it literally, as the harness's tokenizers do.
  virtual std::vector<SpecialToken> special_tokens() const {
    return {{"<|endoftext|>", end_of_text()}};
  }
  /// Appends the ids of `text`, any bytes. Splitting a text into pieces may change the ids unless
  /// the pieces are whole documents, or cut by safe_prefix.
  virtual void encode(std::string_view text, std::vector<Token>& ids) const = 0;
  /// `text` is the beginning of a longer one: the size of its longest part (0: none is certain)
  /// whose ids, followed by those of the rest, are the whole's, whatever comes.
  virtual std::size_t safe_prefix(std::string_view text) const = 0;
  /// The bytes behind the ids, an exact inverse of encode; ids may begin and end within a
  /// character. end_of_text() decodes to "", in GPT-2's to "<|endoftext|>". Throws Error for an id
  /// beyond the vocabulary.
  virtual std::string decode(const std::vector<Token>& ids) const = 0;
};

/// As tokenizer.encode, by all workers: the text is cut into parts by safe_prefix, so that the ids
/// are the same. Worth it from some hundred KB.
void encode(const Tokenizer& tokenizer, std::string_view text, std::vector<Token>& ids,
            const Parallel& parallel);

/// By name, as recipes say it; or of a folder with a vocabulary of Hugging Face's (read_tokenizer,
/// text/bpe_tokenizer.h). Throws UsageError for an unknown one, with the nearest match.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& name);
std::vector<std::string> tokenizer_names();

}  // namespace xsa::text
