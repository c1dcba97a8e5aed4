// Byte-level BPE of any vocabulary: texts are cut as GPT-2 cuts them (gpt2_pieces.h), each piece is
// merged by the vocabulary's own merges. Ids are those of Hugging Face's tokenizers with
// add_special_tokens=False, save that special tokens in a text are text: evaluation alone reads
// them as tokens (special_tokens()).
#pragma once

#include <memory>
#include <mutex>

#include "xsa/text/bpe_vocabulary.h"
#include "xsa/text/gpt2_pieces.h"
#include "xsa/text/tokenizer.h"

namespace xsa::text {

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeVocabulary vocabulary);
  ~BpeTokenizer() override;

  /// Its folder, from the root.
  std::string name() const override;
  std::string identity() const override { return "bpe " + vocabulary_.sha256; }
  std::int64_t vocabulary_size() const override { return std::ssize(vocabulary_.tokens); }
  Token end_of_text() const override { return vocabulary_.end_of_text; }
  Token begin_of_text() const override { return vocabulary_.begin_of_text; }
  std::vector<SpecialToken> special_tokens() const override { return vocabulary_.special; }
  /// Throws Error for a byte that the vocabulary has no token for.
  void encode(std::string_view text, std::vector<Token>& ids) const override;
  std::size_t safe_prefix(std::string_view text) const override;
  std::string decode(const std::vector<Token>& ids) const override;

 private:
  class Encoder;

  BpeVocabulary vocabulary_;
  Gpt2Pieces pieces_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Encoder>> idle_;  // working memory, one for each call at once
};

/// The tokenizer of a folder: GPT-2's where its files are GPT-2's own, else BpeTokenizer. Throws
/// Error as BpeVocabulary::read.
std::unique_ptr<Tokenizer> read_tokenizer(const std::filesystem::path& folder);

}  // namespace xsa::text
