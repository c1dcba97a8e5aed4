#include "xsa/text/byte_tokenizer.h"

#include "xsa/base/error.h"

namespace xsa::text {

void ByteTokenizer::encode(std::string_view text, std::vector<Token>& ids) const {
  const std::size_t first = ids.size();
  ids.resize(first + text.size());
  for (std::size_t i = 0; i < text.size(); ++i)
    ids[first + i] = static_cast<unsigned char>(text[i]);
}

std::string ByteTokenizer::decode(const std::vector<Token>& ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const Token id : ids) {
    check(id <= kEndOfText, "byte tokenizer: expected ids from 0 to ", kEndOfText, ", got ", id,
          "; were these ids made by another tokenizer?");
    if (id != kEndOfText) text += static_cast<char>(id);
  }
  return text;
}

}  // namespace xsa::text
