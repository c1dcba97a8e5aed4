// One record of a data set, read with its schema: each field is of the expected shape, or an Error
// says file, record, field, what was expected and what came.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "xsa/base/json.h"

namespace xsa::tasks {

/// An answer's choices, as ARC and OpenBookQA have them.
struct Choices {
  std::vector<std::string> texts, labels;
};

class Record {
 public:
  /// `where` begins its errors: "piqa: data/validation.parquet, record 17". Both must outlive it.
  Record(const Json& json, const std::string& where) : json_(json), where_(where) {}

  /// A text of well-formed UTF-8; may be empty.
  const std::string& text(std::string_view field) const;
  /// A text of at least one byte.
  const std::string& filled_text(std::string_view field) const;
  std::vector<std::string> texts(std::string_view field, std::size_t count) const;
  /// {"text": [...], "label": [...]}, or a list of {"text", "label"}; two choices or more, labels
  /// (texts or integers) without repetition.
  Choices choices(std::string_view field) const;
  /// A label as a text: texts as they are, integers in decimal, booleans "true" and "false".
  std::string label(std::string_view field) const;
  /// The position of the label in `labels`.
  std::int64_t label_index(std::string_view field, const std::vector<std::string>& labels) const;
  bool has(std::string_view field) const;

  /// Throws the Error about a field. `got` is shown as JSON, cut where it is long.
  [[noreturn]] void refuse(std::string_view field, std::string_view expected,
                           const Json& got) const;

 private:
  const Json& at(std::string_view field) const;
  const std::string& text_of(std::string_view field, const Json& value) const;
  std::string label_of(std::string_view field, const Json& value) const;

  const Json& json_;
  const std::string& where_;
};

}  // namespace xsa::tasks
