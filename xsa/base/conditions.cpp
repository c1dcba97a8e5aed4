#include "xsa/base/conditions.h"

#include <algorithm>
#include <map>

#include "xsa/base/error.h"

namespace xsa {
namespace {

constexpr std::size_t kLongest = 64;  // of a value in a message

/// A hash is long and its beginning tells it from others.
std::string shown(const Json& value) {
  constexpr std::size_t kHash = 64, kOfHash = 12;
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    if (text.size() == kHash && text.find_first_not_of("0123456789abcdef") == std::string::npos)
      return text.substr(0, kOfHash) + "...";
  }
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

std::map<std::string, Json> sorted(const Json& values) {
  std::map<std::string, Json> all;
  if (values.is_object())
    for (const auto& [name, value] : values.items()) all.emplace(name, value);
  return all;
}

}  // namespace

std::vector<Difference> differences(const Conditions& there, const Conditions& here,
                                    const std::vector<std::string>& apart_from) {
  const std::map<std::string, Json> left = sorted(there.values), right = sorted(here.values);
  std::map<std::string, Json> names = left;
  names.insert(right.begin(), right.end());
  std::vector<Difference> found;
  for (const auto& [name, value] : names) {
    if (std::find(apart_from.begin(), apart_from.end(), name) != apart_from.end()) continue;
    const auto a = left.find(name), b = right.find(name);
    if (a != left.end() && b != right.end() && a->second == b->second) continue;
    const bool one_is_silent = a == left.end() || b == right.end();
    if (one_is_silent && !(there.whole && here.whole)) continue;
    found.push_back({name, shown_condition(there, name), shown_condition(here, name)});
  }
  return found;
}

Conditions conditions_of(const Json& recipe, const Json& summary) {
  const bool is_finished = summary.is_object();
  if (is_finished && summary.contains("conditions") && summary["conditions"].is_object())
    return {summary["conditions"], true};
  Conditions conditions{Json::object(), false};
  if (recipe.is_object())
    for (const auto& [table, settings] : recipe.items())
      if (settings.is_object())
        for (const auto& [name, value] : settings.items())
          conditions.values[table + "." + name] = value;
  if (!is_finished) return conditions;
  if (summary.contains("data_sha256")) {
    conditions.values["data_sha256"] = summary["data_sha256"];
    for (const char* const place : {"data.source", "data.cache"}) conditions.values.erase(place);
  }
  if (summary.contains("validation_rows"))
    conditions.values["train.eval_rows"] = summary["validation_rows"];
  return conditions;
}

Json without_measured(const Json& values) {
  Json rest = Json::object();
  for (const auto& [name, value] : values.items())
    if (!name.starts_with("diagnose.") && !name.starts_with("evaluated ") &&
        !name.starts_with("train.eval_"))
      rest[name] = value;
  return rest;
}

std::string shown_condition(const Conditions& conditions, const std::string& name) {
  const bool is_there = conditions.values.is_object() && conditions.values.contains(name);
  return is_there ? shown(conditions.values[name]) : "nothing";
}

std::string list(const std::vector<Difference>& differences, const std::string& here) {
  std::string text;
  for (const Difference& one : differences)
    text += cat(text.empty() ? "" : ", ", one.name, " (", one.there, " there, ", one.here, " ",
                here, ")");
  return text;
}

}  // namespace xsa
