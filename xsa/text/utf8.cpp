#include "xsa/text/utf8.h"

#include <cstring>

namespace xsa::text {
namespace {

constexpr Character kBadByte{kInvalid, 1};

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// How many bytes follow a character's first one, and what the first of them may be.
struct Following {
  int count;
  unsigned char lowest, highest;
};

/// Of an ASCII byte, and of one that begins no character: none.
Following following_of(unsigned char lead) {
  if (lead < 0xC2 || lead > 0xF4) return {0, 0, 0};
  return {lead < 0xE0   ? 1
          : lead < 0xF0 ? 2
                        : 3,
          static_cast<unsigned char>(lead == 0xE0   ? 0xA0
                                     : lead == 0xF0 ? 0x90
                                                    : 0x80),
          static_cast<unsigned char>(lead == 0xED   ? 0x9F
                                     : lead == 0xF4 ? 0x8F
                                                    : 0xBF)};
}

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead < 0xC2   ? 1
                           : lead < 0xE0 ? 2
                           : lead < 0xF0 ? 3
                           : lead < 0xF5 ? 4
                                         : 1;
  if (size == 1 || text.size() < size) return kBadByte;
  char32_t value = lead & (0x7F >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if (!is_continuation(text[i])) return kBadByte;
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t kLowest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  return value < kLowest[size] || value > 0x10FFFF || surrogate ? kBadByte : Character{value, size};
}

Character last_character(std::string_view text) {
  std::size_t size = 1;
  while (size < 4 && size < text.size() && is_continuation(text[text.size() - size])) ++size;
  const Character found = first_character(text.substr(text.size() - size));
  return found.size == size ? found : kBadByte;
}

Broken broken_character(std::string_view text) {
  const Following following = following_of(static_cast<unsigned char>(text[0]));
  std::size_t size = 1;
  for (int i = 0; i < following.count && size < text.size(); ++i, ++size) {
    const auto byte = static_cast<unsigned char>(text[size]);
    const bool fits = i == 0 ? byte >= following.lowest && byte <= following.highest
                             : is_continuation(text[size]);
    if (!fits) return {size, false};
  }
  return {size, size == text.size() && following.count > 0};
}

std::string replace_broken(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Character first = first_character(text);
    const bool broken = first.value == kInvalid;
    const std::size_t size = broken ? broken_character(text).size : first.size;
    result += broken ? kReplacement : text.substr(0, size);
    text.remove_prefix(size);
  }
  return result;
}

void append_utf8(char32_t character, std::string& text) {
  const auto append = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (character < 0x80) {
    append(character);
  } else if (character < 0x800) {
    append(0xC0 | character >> 6);
    append(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    append(0xE0 | character >> 12);
    append(0x80 | (character >> 6 & 0x3F));
    append(0x80 | (character & 0x3F));
  } else {
    append(0xF0 | character >> 18);
    append(0x80 | (character >> 12 & 0x3F));
    append(0x80 | (character >> 6 & 0x3F));
    append(0x80 | (character & 0x3F));
  }
}

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
  const Following following = following_of(byte);
  if (following.count == 0) {
    ++invalid_;
    return;
  }
  seen_ = 1;
  missing_ = following.count;
  lowest_ = following.lowest;
  highest_ = following.highest;
}

}  // namespace xsa::text
