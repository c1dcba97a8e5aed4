// One token a byte: id = the byte, 256 = end of text. Knows every text, needs no vocabulary file.
#pragma once

#include "xsa/text/tokenizer.h"

namespace xsa::text {

class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr Token kEndOfText = 256;

  std::string name() const override { return "byte"; }
  std::int64_t vocabulary_size() const override { return kEndOfText + 1; }
  Token end_of_text() const override { return kEndOfText; }
  void encode(std::string_view text, std::vector<Token>& ids) const override;
  std::size_t safe_prefix(std::string_view text) const override { return text.size(); }
  std::string decode(const std::vector<Token>& ids) const override;
};

}  // namespace xsa::text
