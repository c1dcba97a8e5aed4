// How GPT-2's files write bytes as characters: printable ones of Latin-1 as themselves, the others,
// in order, as U+0100 and on. GPT-2's ids 0 to 255 are the bytes in the same order.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "xsa/text/utf8.h"

namespace xsa::text {

struct ByteAlphabet {
  static constexpr char32_t kEnd = 0x144;  // above every character of it

  std::array<char32_t, 256> character{};
  std::array<char, kEnd> byte{};
  std::array<bool, kEnd> is_known{};
  std::array<char, 256> by_id{};

  ByteAlphabet() {
    std::size_t id = 0;
    char32_t next = 0x100;
    for (const bool printable : {true, false})
      for (std::size_t b = 0; b < 256; ++b) {
        const bool is_printable = (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
        if (is_printable != printable) continue;
        character[b] = printable ? static_cast<char32_t>(b) : next++;
        byte[character[b]] = static_cast<char>(b);
        is_known[character[b]] = true;
        by_id[id++] = static_cast<char>(b);
      }
  }
  std::string written(std::string_view bytes) const {
    std::string text;
    for (const char each : bytes) append_utf8(character[static_cast<unsigned char>(each)], text);
    return text;
  }
  /// The bytes that are written so; nothing where a character is not of the alphabet.
  std::optional<std::string> bytes(std::string_view written) const {
    std::string bytes;
    while (!written.empty()) {
      const Character c = first_character(written);
      if (c.value >= kEnd || !is_known[c.value]) return std::nullopt;
      bytes += byte[c.value];
      written.remove_prefix(c.size);
    }
    return bytes;
  }
};

inline const ByteAlphabet& byte_alphabet() {
  static const ByteAlphabet it;
  return it;
}

}  // namespace xsa::text
