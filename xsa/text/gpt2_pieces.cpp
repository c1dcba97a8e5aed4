#include "xsa/text/gpt2_pieces.h"

#include <algorithm>

#include "xsa/text/unicode_tables.h"

namespace xsa::text {

Gpt2Pieces::Gpt2Pieces() : kinds_(0x110000, kOther) {
  const auto fill = [&](std::span<const CharacterRange> ranges, Kind kind) {
    for (const CharacterRange& range : ranges)
      std::fill(kinds_.begin() + range.first, kinds_.begin() + range.last + 1, kind);
  };
  fill(kLetters, kLetter);
  fill(kNumbers, kNumber);
  fill(kSpaces, kSpace);
  for (std::size_t b = 0; b < 256; ++b) byte_kinds_[b] = b < 0x80 ? kinds_[b] : kMore;
}

std::size_t Gpt2Pieces::contraction(std::string_view text) {
  const char first = text.size() > 1 ? text[1] : '\0';
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const std::string_view two = text.substr(1, 2);
  return two == "re" || two == "ve" || two == "ll" ? 3 : 0;
}

/// Of a run of spaces the last one stays for what follows, unless it is alone or the text ends.
std::size_t Gpt2Pieces::end_of_spaces(std::string_view text, std::size_t begin) const {
  std::size_t end = begin, last = begin;
  while (end < text.size()) {
    const Character c = character(text, end);
    if (kind_of(c) != kSpace) break;
    last = end;
    end += c.size;
  }
  return end == text.size() || last == begin ? end : last;
}

/// After a letter, a number or a sign ends what it is part of, save that an apostrophe may belong
/// to the letters after it. After spaces nothing is sure: they are cut by what follows.
bool Gpt2Pieces::is_border(Character before, Character after) const {
  const Kind kind = kind_of(before);
  return kind != kSpace && kind != kind_of(after) && before.value != '\'';
}

std::size_t Gpt2Pieces::last_border(std::string_view text) const {
  constexpr std::size_t kLongestCharacter = 4;  // the last one in `text` may be incomplete
  if (text.size() <= kLongestCharacter) return 0;
  for (std::size_t at = text.size() - kLongestCharacter; at > 0; --at) {
    const Kind before = byte_kinds_[byte(text, at - 1)];
    if (before != kMore && before == byte_kinds_[byte(text, at)]) continue;
    if (is_border(last_character(text.substr(0, at)), character(text, at))) return at;
  }
  return 0;
}

}  // namespace xsa::text
