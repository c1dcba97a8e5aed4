#include "xsa/text/utf8.h"

#include <cstring>

namespace xsa::text {

void Utf8Counter::add(std::string_view piece) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  for (std::size_t i = 0; i < piece.size();) {
    std::uint64_t eight;
    if (seen_ == 0 && i + sizeof eight <= piece.size()) {
      std::memcpy(&eight, piece.data() + i, sizeof eight);
      if ((eight & kHighBits) == 0) {
        i += sizeof eight;
        continue;
      }
    }
    add_byte(static_cast<unsigned char>(piece[i++]));
  }
}

void Utf8Counter::add_byte(unsigned char byte) {
  if (seen_ > 0 && byte >= lowest_ && byte <= highest_) {
    ++seen_;
    lowest_ = 0x80, highest_ = 0xBF;
    if (--missing_ == 0) seen_ = 0;
    return;
  }
  invalid_ += seen_;  // the sequence in progress breaks off; this byte may begin a new one
  seen_ = 0;
  start(byte);
}

void Utf8Counter::start(unsigned char byte) {
  if (byte < 0x80) return;
  if (byte < 0xC2 || byte > 0xF4) {
    ++invalid_;
    return;
  }
  seen_ = 1;
  missing_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
  lowest_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
  highest_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
}

}  // namespace xsa::text
