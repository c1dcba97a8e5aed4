// GPT-2's byte-level BPE: ids as tiktoken's gpt2 encode_ordinary gives them, and, where a text is
// not well-formed UTF-8, ids that still decode to the same bytes (gpt2_pieces.h has the rule;
// Python can only encode such a text after it has replaced the bytes). "<|endoftext|>" in a text is
// text.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>

#include "xsa/text/gpt2_pieces.h"
#include "xsa/text/gpt2_vocabulary.h"
#include "xsa/text/tokenizer.h"

namespace xsa::text {

class Gpt2Tokenizer final : public Tokenizer {
 public:
  static constexpr Token kEndOfText = 50256;

  /// From a folder with the vocabulary. Throws Error as Gpt2Vocabulary does.
  explicit Gpt2Tokenizer(const std::filesystem::path& folder,
                         const std::string& remedy = kVocabularyRemedy);
  ~Gpt2Tokenizer() override;

  std::string name() const override { return "gpt2"; }
  std::int64_t vocabulary_size() const override { return kEndOfText + 1; }
  Token end_of_text() const override { return kEndOfText; }
  void encode(std::string_view text, std::vector<Token>& ids) const override;
  std::size_t safe_prefix(std::string_view text) const override;
  std::string decode(const std::vector<Token>& ids) const override;

 private:
  class Encoder;

  Gpt2Vocabulary vocabulary_;
  Gpt2Pieces pieces_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Encoder>> idle_;  // working memory, one for each call at once
};

}  // namespace xsa::text
