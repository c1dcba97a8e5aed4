// Facts about every character, generated: tools/unicode_tables.py writes unicode_tables.cpp by
// asking tiktoken (what GPT-2's pattern matches) and Python (what str's methods do).
#pragma once

#include <cstdint>
#include <span>

namespace xsa::text {

/// From `first` to `last`, both included. Tables are sorted and their ranges do not touch.
struct CharacterRange {
  std::uint32_t first, last;
};

/// Every `stride`-th character from `first` to `last` becomes itself + `delta`.
struct CaseRange {
  std::uint32_t first, last, stride;
  std::int32_t delta;
};

/// A character that becomes several (`to` ends with 0 where it is fewer than three).
struct CaseSpecial {
  std::uint32_t character;
  std::uint32_t to[3];
};

// \p{L}, \p{N} and \s of tiktoken's regular expressions.
extern const std::span<const CharacterRange> kLetters, kNumbers, kSpaces;

// Python's str: isspace, title case of a first character, lower case, and what the final sigma's
// rule calls cased and case-ignorable (kCased leaves out what is both).
extern const std::span<const CharacterRange> kPythonSpaces, kCased, kCaseIgnorable;
extern const std::span<const CaseRange> kTitle, kLower;
extern const std::span<const CaseSpecial> kTitleSpecial, kLowerSpecial;

}  // namespace xsa::text
