// One field of a line of JSON, without a tree: the whole line is checked, the field is unescaped. A
// field within others is named by its path, "meta.text"; of a list, all strings are taken.
// (simdjson would do, but Arrow's libraries export another version of it under the same names.)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "xsa/data/row_reader.h"

namespace xsa::data {

class JsonText {
 public:
  explicit JsonText(std::string column) : column_(std::move(column)) {}

  /// Sets row.text to the field's string, or to a list's strings with line breaks between them
  /// (nulls in it passed over), which is valid until the next call or while `line` is; or
  /// row.fault and row.reason. Strict JSON (RFC 8259) but for NaN, Infinity and -Infinity, which
  /// Python writes; nesting up to 512; of equal keys the last counts. UTF-8 is not checked.
  void read(std::string_view line, Row& row);

 private:
  struct Refusal;
  struct Text {
    std::string_view raw;  // between the quotes
    bool escaped = false;
  };

  [[noreturn]] void refuse(const char* expected) const;
  void skip_space();
  bool take(char wanted);
  void expect(char wanted, const char* expected);
  Text take_string();
  void take_value(int depth);
  void take_members(std::size_t within, int depth, Row& row);
  void take_on_the_way(std::size_t within, int depth, Row& row);
  template <class TakeElement>
  void take_list(Row& row, const TakeElement& take_element);
  void take_number();
  void take_digits();
  void take_word(std::string_view word);
  void take_field(int depth, Row& row);
  std::string_view unescaped(const Text& text, std::string& buffer) const;

  std::string column_, text_buffer_, key_buffer_, joined_;
  bool found_ = false;
  int lists_ = 0;            // that the place lies in
  std::size_t strings_ = 0;  // in joined_
  const char *begin_ = nullptr, *at_ = nullptr, *end_ = nullptr;
};

}  // namespace xsa::data
