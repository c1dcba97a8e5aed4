#include "xsa/data/json_text.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "xsa/base/error.h"
#include "xsa/base/parse_json.h"
#include "xsa/text/utf8.h"

namespace xsa::data {
namespace {

constexpr int kMaxDepth = 512;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// What ends the plain run of a string: a quote, a backslash, a control character.
constexpr std::array<bool, 256> kSpecial = [] {
  std::array<bool, 256> special{};
  for (int i = 0; i < 0x20; ++i) special[static_cast<std::size_t>(i)] = true;
  special['"'] = special['\\'] = true;
  return special;
}();

/// The four digits after \u, or -1.
int hex4(const char* at, const char* end) {
  if (end - at < 4) return -1;
  int value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = at[i];
    const int digit = is_digit(c)            ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

void add_texts(const Json& value, const std::string& path, std::vector<std::string>& paths) {
  if (value.is_object())
    for (const auto& [key, member] : value.items())
      add_texts(member, path.empty() ? key : path + "." + key, paths);
  if (value.is_array())
    for (const Json& element : value) add_texts(element, path, paths);
  if (value.is_string() && std::find(paths.begin(), paths.end(), path) == paths.end())
    paths.push_back(path);
}

/// The paths that a column may be named by.
std::vector<std::string> texts_in(std::string_view line) {
  std::vector<std::string> paths;
  add_texts(try_parse_json(line), "", paths);
  return paths;
}

}  // namespace

struct JsonText::Refusal {
  Fault fault;
  std::string reason;
};

void JsonText::refuse(const char* expected) const {
  throw Refusal{Fault::kBroken, cat("expected ", expected, " at byte ", at_ - begin_)};
}

void JsonText::skip_space() {
  while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
}

bool JsonText::take(char wanted) {
  skip_space();
  if (at_ == end_ || *at_ != wanted) return false;
  ++at_;
  return true;
}

void JsonText::expect(char wanted, const char* expected) {
  if (!take(wanted)) refuse(expected);
}

JsonText::Text JsonText::take_string() {
  expect('"', "a string");
  Text text;
  const char* first = at_;
  for (;; ++at_) {
    while (at_ < end_ && !kSpecial[static_cast<unsigned char>(*at_)]) ++at_;
    if (at_ == end_ || static_cast<unsigned char>(*at_) < 0x20) refuse("the end of the string");
    if (*at_ == '"') break;
    text.escaped = true;
    ++at_;
    const bool known = at_ < end_ && std::strchr("\"\\/bfnrtu", *at_) != nullptr && *at_ != '\0';
    if (!known || (*at_ == 'u' && hex4(at_ + 1, end_) < 0)) refuse("an escape sequence");
  }
  text.raw = {first, static_cast<std::size_t>(at_ - first)};
  ++at_;
  return text;
}

std::string_view JsonText::unescaped(const Text& text, std::string& buffer) const {
  if (!text.escaped) return text.raw;
  buffer.clear();
  const char* at = text.raw.data();
  const char* const end = at + text.raw.size();
  while (at < end) {
    const auto* next =
        static_cast<const char*>(std::memchr(at, '\\', static_cast<std::size_t>(end - at)));
    buffer.append(at, next ? next : end);
    if (!next) break;
    at = next + 2;
    if (next[1] != 'u') {
      constexpr std::string_view kFrom = "bfnrt", kTo = "\b\f\n\r\t";
      const std::size_t which = kFrom.find(next[1]);
      buffer += which == kFrom.npos ? next[1] : kTo[which];
      continue;
    }
    auto value = static_cast<char32_t>(hex4(at, end));
    at += 4;
    const bool leads = value >= 0xD800 && value < 0xDC00;
    const int trail =
        leads && end - at >= 6 && at[0] == '\\' && at[1] == 'u' ? hex4(at + 2, end) : -1;
    if (trail >= 0xDC00 && trail < 0xE000) {
      value = 0x10000 + ((value - 0xD800) << 10) + (static_cast<char32_t>(trail) - 0xDC00);
      at += 6;
    }
    if (value >= 0xD800 && value < 0xE000)
      throw Refusal{Fault::kInvalidUtf8, "half a surrogate pair, which no UTF-8 can hold"};
    text::append_utf8(value, buffer);
  }
  return buffer;
}

void JsonText::take_word(std::string_view word) {
  if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word))
    refuse("a value");
  at_ += word.size();
}

void JsonText::take_digits() {
  if (at_ == end_ || !is_digit(*at_)) refuse("a digit");
  while (at_ < end_ && is_digit(*at_)) ++at_;
}

void JsonText::take_number() {
  if (*at_ == '-') ++at_;
  if (at_ < end_ && *at_ == '0')
    ++at_;
  else
    take_digits();
  if (at_ < end_ && *at_ == '.') {
    ++at_;
    take_digits();
  }
  if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    take_digits();
  }
}

void JsonText::take_value(int depth) {
  skip_space();
  if (at_ == end_) refuse("a value");
  if (depth > kMaxDepth) refuse("less nesting");
  switch (*at_) {
    case '"':
      take_string();
      return;
    case '{':
      ++at_;
      if (take('}')) return;
      do {
        skip_space();
        take_string();
        expect(':', "':'");
        take_value(depth + 1);
      } while (take(','));
      return expect('}', "',' or '}'");
    case '[':
      ++at_;
      if (take(']')) return;
      do {
        take_value(depth + 1);
      } while (take(','));
      return expect(']', "',' or ']'");
    case 't':
      return take_word("true");
    case 'f':
      return take_word("false");
    case 'n':
      return take_word("null");
    // As Python writes what JSON has no word for.
    case 'N':
      return take_word("NaN");
    case 'I':
      return take_word("Infinity");
    default:
      if (*at_ != '-' && !is_digit(*at_)) refuse("a value");
      if (at_ + 1 < end_ && at_[1] == 'I') return take_word("-Infinity");
      take_number();
  }
}

/// Hands each element to take_element; the strings of the outermost list are the text.
template <class TakeElement>
void JsonText::take_list(Row& row, const TakeElement& take_element) {
  if (lists_ == 0) {
    joined_.clear();
    strings_ = 0;
  }
  ++lists_;
  expect('[', "'['");
  if (take(']')) {
    found_ = true;
  } else {
    do {
      take_element();
    } while (take(','));
    expect(']', "',' or ']'");
  }
  if (--lists_ == 0 && row.fault == Fault::kNone) row.text = joined_;
}

/// The value of the wanted key, or an element of the list that it is. A later one of the same key
/// takes its place.
void JsonText::take_field(int depth, Row& row) {
  if (depth > kMaxDepth) refuse("less nesting");
  found_ = true;
  if (lists_ == 0) row = Row{};
  skip_space();
  const char first = at_ < end_ ? *at_ : '\0';
  if (first == '[') return take_list(row, [&] { take_field(depth + 1, row); });
  if (first == '"') {
    const std::string_view text = unescaped(take_string(), text_buffer_);
    if (lists_ == 0) {
      row.text = text;
    } else {
      if (strings_++ > 0) joined_ += '\n';
      joined_ += text;
    }
    return;
  }
  take_value(depth);
  const bool is_null = first == 'n';
  if (is_null && lists_ > 0) return;
  row.fault = is_null ? Fault::kNoText : Fault::kWrongType;
  row.reason = is_null ? cat("'", column_, "' is null")
                       : cat("'", column_, "': expected ",
                             lists_ > 0 ? "strings in its list" : "a string", ", got ",
                             first == '{'                   ? "an object"
                             : first == 't' || first == 'f' ? "a boolean"
                                                            : "a number");
}

/// A value whose key is the path's up to `within`: the field lies in it, or in each of its
/// elements.
void JsonText::take_on_the_way(std::size_t within, int depth, Row& row) {
  skip_space();
  if (at_ < end_ && *at_ == '{') return take_members(within, depth + 1, row);
  if (at_ == end_ || *at_ != '[') return take_value(depth);
  if (depth > kMaxDepth) refuse("less nesting");
  if (lists_ == 0) row = Row{};
  take_list(row, [&] { take_on_the_way(within, depth + 1, row); });
}

/// An object's. The path goes on at `within` of the column's name.
void JsonText::take_members(std::size_t within, int depth, Row& row) {
  if (depth > kMaxDepth) refuse("less nesting");
  skip_space();
  if (at_ < end_ && *at_ == '[') refuse("a JSON object, not an array,");
  expect('{', "a JSON object");
  if (take('}')) return;
  const std::string_view wanted = std::string_view(column_).substr(within);
  do {
    skip_space();
    const std::string_view key = unescaped(take_string(), key_buffer_);
    const bool is_it = key == wanted;
    const bool is_on_the_way =
        wanted.size() > key.size() && wanted.starts_with(key) && wanted[key.size()] == '.';
    const std::size_t rest = within + key.size() + 1;
    expect(':', "':'");
    if (is_it)
      take_field(depth, row);
    else if (is_on_the_way)
      take_on_the_way(rest, depth, row);
    else
      take_value(depth);
  } while (take(','));
  expect('}', "',' or '}'");
}

void JsonText::read(std::string_view line, Row& row) {
  begin_ = at_ = line.data();
  end_ = begin_ + line.size();
  found_ = false;
  lists_ = 0;
  row = Row{};
  try {
    take_members(0, 0, row);
    skip_space();
    if (at_ != end_) refuse("the end of the line");
    if (!found_) throw Refusal{Fault::kNoText, missing_column(column_, texts_in(line))};
  } catch (const Refusal& refusal) {
    row = Row{.fault = refusal.fault, .reason = refusal.reason};
  }
}

}  // namespace xsa::data
