#include "xsa/text/case.h"

#include <algorithm>

#include "xsa/text/unicode_tables.h"
#include "xsa/text/utf8.h"

namespace xsa::text {
namespace {

constexpr char32_t kSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2;

/// The range that may hold `character`: the first one that does not end before it.
template <class Range>
const Range* find_range(std::span<const Range> table, char32_t character) {
  const auto found =
      std::lower_bound(table.begin(), table.end(), character,
                       [](const Range& range, char32_t c) { return range.last < c; });
  return found != table.end() && found->first <= character ? &*found : nullptr;
}

bool holds(std::span<const CharacterRange> table, char32_t character) {
  return find_range(table, character) != nullptr;
}

void append_mapped(char32_t c, std::span<const CaseRange> table,
                   std::span<const CaseSpecial> special, std::string& out) {
  for (const CaseSpecial& each : special) {
    if (each.character != c) continue;
    for (const char32_t to : each.to)
      if (to != 0) append_utf8(to, out);
    return;
  }
  const CaseRange* range = find_range(table, c);
  const bool changes = range != nullptr && (c - range->first) % range->stride == 0;
  append_utf8(changes ? c + static_cast<char32_t>(range->delta) : c, out);
}

/// Whether a cased character comes next from the end of `text` that `next` looks at.
bool next_is_cased(std::string_view text, bool backwards) {
  while (!text.empty()) {
    const Character c = backwards ? last_character(text) : first_character(text);
    if (!holds(kCaseIgnorable, c.value)) return holds(kCased, c.value);
    backwards ? text.remove_suffix(c.size) : text.remove_prefix(c.size);
  }
  return false;
}

}  // namespace

std::string capitalize(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Character c = first_character(text.substr(at));
    if (c.value == kInvalid) {
      out += text[at];
    } else if (at == 0) {
      append_mapped(c.value, kTitle, kTitleSpecial, out);
    } else if (c.value == kSigma) {
      const bool is_final = next_is_cased(text.substr(0, at), true) &&
                            !next_is_cased(text.substr(at + c.size), false);
      append_utf8(is_final ? kFinalSigma : kSmallSigma, out);
    } else if (c.value < 0x80) {
      out += static_cast<char>(c.value >= 'A' && c.value <= 'Z' ? c.value + 32 : c.value);
    } else {
      append_mapped(c.value, kLower, kLowerSpecial, out);
    }
    at += c.size;
  }
  return out;
}

bool is_python_space(char32_t character) { return holds(kPythonSpaces, character); }

std::string_view lstrip(std::string_view text) {
  while (!text.empty()) {
    const Character c = first_character(text);
    if (!is_python_space(c.value)) break;
    text.remove_prefix(c.size);
  }
  return text;
}

std::string_view rstrip(std::string_view text) {
  while (!text.empty()) {
    const Character c = last_character(text);
    if (!is_python_space(c.value)) break;
    text.remove_suffix(c.size);
  }
  return text;
}

std::string_view strip(std::string_view text) { return rstrip(lstrip(text)); }

std::int64_t code_points(std::string_view text) {
  std::int64_t count = 0;
  for (; !text.empty(); text.remove_prefix(first_character(text).size)) ++count;
  return count;
}

}  // namespace xsa::text
