#include "xsa/data/json_text.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "xsa/base/error.h"
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
    default:
      if (*at_ != '-' && !is_digit(*at_)) refuse("a value");
      take_number();
  }
}

/// The value of the wanted key. A later one of the same key takes its place.
void JsonText::take_field(Row& row) {
  found_ = true;
  row.fault = Fault::kNone;
  row.text = {};
  skip_space();
  const char first = at_ < end_ ? *at_ : '\0';
  if (first == '"') {
    row.text = unescaped(take_string(), text_buffer_);
    return;
  }
  take_value(0);
  row.fault = first == 'n' ? Fault::kNoText : Fault::kWrongType;
  row.reason = first == 'n' ? cat("'", column_, "' is null")
                            : cat("'", column_, "': expected a string, got ",
                                  first == '{'                   ? "an object"
                                  : first == '['                 ? "an array"
                                  : first == 't' || first == 'f' ? "a boolean"
                                                                 : "a number");
}

void JsonText::take_members(Row& row) {
  expect('{', "a JSON object");
  if (take('}')) return;
  do {
    skip_space();
    const std::string_view key = unescaped(take_string(), key_buffer_);
    expect(':', "':'");
    if (key == column_) {
      take_field(row);
    } else {
      if (!found_) keys_.emplace_back(key);
      take_value(0);
    }
  } while (take(','));
  expect('}', "',' or '}'");
}

void JsonText::read(std::string_view line, Row& row) {
  begin_ = at_ = line.data();
  end_ = begin_ + line.size();
  keys_.clear();
  found_ = false;
  row = Row{};
  try {
    take_members(row);
    skip_space();
    if (at_ != end_) refuse("the end of the line");
    if (!found_) throw Refusal{Fault::kNoText, missing_column(column_, keys_)};
  } catch (const Refusal& refusal) {
    row = Row{.fault = refusal.fault, .reason = refusal.reason};
  }
}

}  // namespace xsa::data
