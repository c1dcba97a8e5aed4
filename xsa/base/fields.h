// One visitor per configuration struct: defaults, parsing, ranges, help, JSON and docs all come
// from it.
//
//   struct TrainConfig {
//     double lr = 1e-3;
//     template <class Self, class Visitor>
//     static void fields(Self& self, Visitor&& field) {
//       field("lr", self.lr, "peak learning rate", above(0));
//     }
//   };
//
// Field types: bool, std::int64_t, double, std::string. A setting that cannot change a result says
// so:
//       field("log_every", self.log_every, "steps between lines", at_least(1), Effect::kNone);
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/json.h"
#include "xsa/base/suggest.h"

namespace xsa {

/// What a field may hold. Numbers: [min, max], or (min, max] where `open`. Strings: one of
/// `choices`, if there are any.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open = false;
  std::vector<std::string> choices;
};
inline Range at_least(double min) { return {.min = min}; }
inline Range above(double min) { return {.min = min, .open = true}; }
inline Range between(double min, double max) { return {.min = min, .max = max}; }
inline Range one_of(std::vector<std::string> choices) { return {.choices = std::move(choices)}; }

/// Whether a setting can change a result. One that nobody classed counts as if it can, so that a
/// new one never lets results of different conditions stand together (conditions.h).
enum class Effect {
  kResults,
  kNone,  // what is logged or kept, where things lie; what a name stands for is known by its
          // content
};

/// "in [0, 1]", "above 0", "one of standard, exclusive"; "" where anything goes.
std::string describe(const Range& range);

namespace detail {
void check_range(const std::string& where, double value, const Range& range);
void check_range(const std::string& where, const std::string& value, const Range& range);
void read(const std::string& where, const Json& json, bool& value);
void read(const std::string& where, const Json& json, std::int64_t& value);
void read(const std::string& where, const Json& json, double& value);
void read(const std::string& where, const Json& json, std::string& value);
/// A command line's text as the JSON value that a field of this type reads: "3e-4" -> 0.0003,
/// "true" -> true.
template <class T>
Json parse_text(const std::string& text) {
  if constexpr (std::is_same_v<T, std::string>) return text;
  const Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? Json(text) : value;
}
template <class T>
constexpr std::string_view type_name() {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_same_v<T, std::int64_t>) return "integer";
  if constexpr (std::is_same_v<T, double>) return "number";
  return "text";
}
}  // namespace detail

/// One row of a configuration's help.
struct FieldHelp {
  std::string name, type, default_value, help, range;
};

template <class Config>
std::vector<FieldHelp> help_of() {
  std::vector<FieldHelp> rows;
  const Config defaults;
  Config::fields(defaults, [&](const char* name, const auto& value, const char* help,
                               const Range& range = {}, Effect = {}) {
    using T = std::remove_cvref_t<decltype(value)>;
    rows.push_back(
        {name, std::string(detail::type_name<T>()), Json(value).dump(), help, describe(range)});
  });
  return rows;
}

template <class Config>
Json to_json(const Config& config) {
  Json json = Json::object();
  Config::fields(config, [&](const char* name, const auto& value, const char*, const Range& = {},
                             Effect = {}) { json[name] = value; });
  return json;
}

template <class Config>
std::vector<std::string> field_names() {
  std::vector<std::string> names;
  for (const FieldHelp& row : help_of<Config>()) names.push_back(row.name);
  return names;
}

/// Sets the fields that `json` names and leaves the others. Throws UsageError for an unknown key
/// (with the nearest match), a wrong type or a value out of range. `where` is the table's name,
/// e.g. "train".
template <class Config>
void apply_json(Config& config, const Json& json, const std::string& where) {
  check_usage(json.is_object(), where, ": expected a table of settings, got ", json.dump());
  for (const auto& item : json.items()) {
    const std::string& key = item.key();
    const Json& value = item.value();
    bool known = false;
    Config::fields(config, [&](const char* name, auto& field, const char*, const Range& range = {},
                               Effect = {}) {
      if (key != name) return;
      known = true;
      const std::string full_name = where + "." + key;
      auto updated = field;
      detail::read(full_name, value, updated);
      if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(field)>, bool>) {
        if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(field)>>) {
          detail::check_range(full_name, static_cast<double>(updated), range);
        } else {
          detail::check_range(full_name, updated, range);
        }
      }
      field = updated;
    });
    check_usage(known, where, ": unknown setting '", key, "'",
                did_you_mean(key, field_names<Config>()));
  }
}

/// Sets one field from a command line's text, e.g. ("lr", "3e-4"). Errors as apply_json.
template <class Config>
void apply_text(Config& config, const std::string& key, const std::string& text,
                const std::string& where) {
  Json json = Json::object();
  Config::fields(config, [&](const char* name, const auto& field, const char*, const Range& = {},
                             Effect = {}) {
    if (key == name) json[key] = detail::parse_text<std::remove_cvref_t<decltype(field)>>(text);
  });
  if (json.empty()) json[key] = text;
  apply_json(config, json, where);
}

}  // namespace xsa
