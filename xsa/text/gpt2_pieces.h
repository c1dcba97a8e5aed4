// Where GPT-2's pattern cuts a text into the pieces that are then encoded one by one:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// with letters, numbers and spaces as tiktoken has them. A byte that belongs to no well-formed
// UTF-8 sequence is a character of its own, none of the three: as U+FFFD would be, which Python
// puts there.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "xsa/text/utf8.h"

namespace xsa::text {

class Gpt2Pieces {
 public:
  Gpt2Pieces();

  /// The end of the piece that begins at `begin` < text.size().
  std::size_t end_of_piece(std::string_view text, std::size_t begin) const {
    std::size_t at = begin + (text[begin] == ' ');
    if (at + kEight <= text.size()) {  // most pieces: a word of ASCII letters
      const std::size_t letters = leading_ascii_letters(text.data() + at);
      at += letters;
      if (letters > 0)
        return letters < kEight && byte(text, at) < 0x80 ? at : end_of_run(text, at, kLetter);
    }
    at = begin;
    Kind kind = byte_kinds_[byte(text, at)];
    if (text[at] == ' ' && at + 1 < text.size()) {
      const Character next = character(text, at + 1);
      kind = kind_of(next);
      if (kind != kSpace) return end_of_run(text, at + 1 + next.size, kind);
      return end_of_spaces(text, begin);
    }
    if (text[at] == '\'') {
      if (const std::size_t size = contraction(text.substr(at))) return at + size;
    }
    std::size_t size = 1;
    if (kind == kMore) {
      const Character first = first_character(text.substr(at));
      kind = kind_of(first);
      size = first.size;
    }
    return kind == kSpace ? end_of_spaces(text, begin) : end_of_run(text, at + size, kind);
  }

  /// The last place in `text` where pieces are sure to be cut, whatever comes after it, and where
  /// the pieces on either side do not depend on the other; 0 if there is none.
  std::size_t last_border(std::string_view text) const;

 private:
  enum Kind : std::uint8_t { kOther, kLetter, kNumber, kSpace, kMore };  // kMore: a byte of several

  static constexpr std::size_t kEight = 8;

  /// Of the eight bytes at `bytes`, without a branch.
  static std::size_t leading_ascii_letters(const char* bytes) {
    static_assert(std::endian::native == std::endian::little, "the first byte is the lowest");
    constexpr std::uint64_t kOnes = 0x0101010101010101, kHigh = 0x80 * kOnes;
    std::uint64_t eight;
    std::memcpy(&eight, bytes, sizeof eight);
    const std::uint64_t lower = (eight & ~kHigh) | 0x20 * kOnes;
    const std::uint64_t from_a = lower + (0x80 - 'a') * kOnes;       // high bit: not below 'a'
    const std::uint64_t after_z = lower + (0x80 - 'z' - 1) * kOnes;  // high bit: beyond 'z'
    const std::uint64_t others = (~from_a | after_z | eight) & kHigh;
    return static_cast<std::size_t>(std::countr_zero(others)) / 8;
  }
  static unsigned char byte(std::string_view text, std::size_t at) {
    return static_cast<unsigned char>(text[at]);
  }
  Character character(std::string_view text, std::size_t at) const {
    const unsigned char first = byte(text, at);
    return first < 0x80 ? Character{first, 1} : first_character(text.substr(at));
  }
  Kind kind_of(Character c) const { return c.value < kinds_.size() ? kinds_[c.value] : kOther; }
  std::size_t end_of_run(std::string_view text, std::size_t at, Kind kind) const {
    while (at < text.size()) {
      const Kind here = byte_kinds_[byte(text, at)];
      if (here == kind) {
        ++at;
      } else if (here != kMore) {
        break;
      } else {
        const Character c = first_character(text.substr(at));
        if (kind_of(c) != kind) break;
        at += c.size;
      }
    }
    return at;
  }
  std::size_t end_of_spaces(std::string_view text, std::size_t begin) const;
  static std::size_t contraction(std::string_view text);
  bool is_border(Character before, Character after) const;

  std::array<Kind, 256> byte_kinds_;
  std::vector<Kind> kinds_;  // of every character
};

}  // namespace xsa::text
