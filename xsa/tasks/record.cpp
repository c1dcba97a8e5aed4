#include "xsa/tasks/record.h"

#include <algorithm>

#include "xsa/base/error.h"
#include "xsa/base/suggest.h"
#include "xsa/text/utf8.h"

namespace xsa::tasks {
namespace {

/// JSON for a message: at most some 80 bytes, never invalid UTF-8.
std::string shown(const Json& value) {
  constexpr std::size_t kLongest = 80;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "…";
  if (value.is_array()) text = cat("a list of ", value.size(), ": ", text);
  return text;
}

std::string quoted(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "'" : ", '") + word + "'";
  return list;
}

}  // namespace

void Record::refuse(std::string_view field, std::string_view expected, const Json& got) const {
  throw Error(cat(where_, ": ", field, ": expected ", expected, ", got ", shown(got)));
}

bool Record::has(std::string_view field) const {
  return json_.is_object() && json_.contains(std::string(field));
}

const Json& Record::at(std::string_view field) const {
  check(json_.is_object(), where_, ": expected an object of fields, got ", shown(json_));
  const auto found = json_.find(std::string(field));
  if (found != json_.end()) return *found;
  std::vector<std::string> names;
  for (const auto& item : json_.items()) names.push_back(item.key());
  throw Error(cat(where_, ": field '", field, "' is missing", did_you_mean(field, names),
                  "; the record has ", names.empty() ? "none" : quoted(names)));
}

const std::string& Record::text_of(std::string_view field, const Json& value) const {
  if (!value.is_string()) refuse(field, "a text", value);
  const auto& text = value.get_ref<const std::string&>();
  text::Utf8Counter counter;
  counter.add(text);
  if (counter.invalid_bytes() > 0) refuse(field, "a text in UTF-8", value);
  return text;
}

const std::string& Record::text(std::string_view field) const { return text_of(field, at(field)); }

const std::string& Record::filled_text(std::string_view field) const {
  const std::string& found = text(field);
  if (found.empty()) refuse(field, "a text that is not empty", found);
  return found;
}

std::vector<std::string> Record::texts(std::string_view field, std::size_t count) const {
  const Json& value = at(field);
  if (!value.is_array() || value.size() != count)
    refuse(field, cat("a list of ", count, " texts"), value);
  std::vector<std::string> list;
  for (std::size_t i = 0; i < count; ++i)
    list.push_back(text_of(cat(field, "[", i, "]"), value[i]));
  return list;
}

Choices Record::choices(std::string_view field) const {
  const Json& value = at(field);
  Choices choices;
  const auto add = [&](std::string_view name, const Json& text, const Json& label) {
    choices.texts.push_back(text_of(cat(name, ".text"), text));
    choices.labels.push_back(label_of(cat(name, ".label"), label));
  };
  const auto is_choice = [](const Json& entry) {
    return entry.is_object() && entry.contains("text") && entry.contains("label");
  };
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string name = cat(field, "[", i, "]");
      if (!is_choice(value[i])) refuse(name, "an object with text and label", value[i]);
      add(name, value[i]["text"], value[i]["label"]);
    }
  } else {
    if (!is_choice(value) || !value["text"].is_array() || !value["label"].is_array() ||
        value["text"].size() != value["label"].size())
      refuse(field, "lists text and label of one length", value);
    for (std::size_t i = 0; i < value["text"].size(); ++i)
      add(field, value["text"][i], value["label"][i]);
  }
  if (choices.texts.size() < 2) refuse(field, "two choices or more", value);
  std::vector<std::string> labels = choices.labels;
  std::sort(labels.begin(), labels.end());
  if (std::adjacent_find(labels.begin(), labels.end()) != labels.end())
    refuse(field, "labels that differ", value);
  return choices;
}

std::string Record::label_of(std::string_view field, const Json& value) const {
  if (value.is_string()) return text_of(field, value);
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (!value.is_number_integer()) refuse(field, "a label (a text or an integer)", value);
  return value.dump();
}

std::string Record::label(std::string_view field) const { return label_of(field, at(field)); }

std::int64_t Record::label_index(std::string_view field,
                                 const std::vector<std::string>& labels) const {
  const std::string found = label(field);
  const auto place = std::find(labels.begin(), labels.end(), found);
  if (place == labels.end()) {
    const bool hidden = found.empty() || found == "-1";
    refuse(field,
           cat("one of ", quoted(labels),
               hidden ? " (this looks like a test split, whose answers are kept secret)" : ""),
           at(field));
  }
  return place - labels.begin();
}

}  // namespace xsa::tasks
