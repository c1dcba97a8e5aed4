// What Python's str methods do to a text, on UTF-8: evaluation must prepare its texts exactly as
// the field's Python does. A byte that belongs to no well-formed UTF-8 sequence counts as one
// character, neither cased nor a space, and stays as it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace xsa::text {

/// str.capitalize(): the first character in title case, all others in lower case, with Unicode's
/// full mappings (one character may become three) and the rule of the final sigma. The Unicode
/// version is that of unicode_tables.cpp.
std::string capitalize(std::string_view text);

/// str.strip(), lstrip(), rstrip() without argument: views into `text`.
std::string_view strip(std::string_view text);
std::string_view lstrip(std::string_view text);
std::string_view rstrip(std::string_view text);

/// str.isspace() of one character, which is also what `\s` matches in Python's re: among others
/// U+001C to U+001F, which are no spaces in the tokenizer's pattern.
bool is_python_space(char32_t character);

/// len() of the str: characters, not bytes.
std::int64_t code_points(std::string_view text);

}  // namespace xsa::text
