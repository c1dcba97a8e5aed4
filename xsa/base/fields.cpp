#include "xsa/base/fields.h"

#include <algorithm>

namespace xsa {
namespace {

std::string number(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15
             ? cat(static_cast<std::int64_t>(value))
             : cat(value);
}

[[noreturn]] void wrong_type(const std::string& where, std::string_view expected,
                             const Json& json) {
  throw UsageError(cat(where, ": expected ", expected, ", got ", json.dump()));
}

}  // namespace

std::string describe(const Range& range) {
  if (!range.choices.empty()) {
    std::string text = "one of ";
    for (const std::string& choice : range.choices) text += (text.size() > 7 ? ", " : "") + choice;
    return text;
  }
  const bool has_min = std::isfinite(range.min), has_max = std::isfinite(range.max);
  if (has_min && has_max)
    return cat("in ", range.open ? "(" : "[", number(range.min), ", ", number(range.max), "]");
  if (has_min) return cat(range.open ? "above " : "at least ", number(range.min));
  if (has_max) return cat("at most ", number(range.max));
  return "";
}

namespace detail {

void check_range(const std::string& where, double value, const Range& range) {
  const bool holds = (range.open ? value > range.min : value >= range.min) && value <= range.max &&
                     std::isfinite(value);
  check_usage(holds, where, ": expected a value ", describe(range), ", got ", value);
}

void check_range(const std::string& where, const std::string& value, const Range& range) {
  if (range.choices.empty()) return;
  const bool holds =
      std::find(range.choices.begin(), range.choices.end(), value) != range.choices.end();
  check_usage(holds, where, ": expected ", describe(range), ", got '", value, "'",
              did_you_mean(value, range.choices));
}

void read(const std::string& where, const Json& json, bool& value) {
  if (!json.is_boolean()) wrong_type(where, "true or false", json);
  value = json.get<bool>();
}

void read(const std::string& where, const Json& json, std::int64_t& value) {
  if (json.is_number_float()) {  // 1e3 is a fine way to write 1000
    const double number = json.get<double>();
    if (number != std::floor(number) || std::abs(number) > 9e15)
      wrong_type(where, "an integer", json);
    value = static_cast<std::int64_t>(number);
    return;
  }
  if (!json.is_number_integer()) wrong_type(where, "an integer", json);
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > 9'000'000'000'000'000'000ULL)
    wrong_type(where, "an integer below 9e18", json);
  value = json.get<std::int64_t>();
}

void read(const std::string& where, const Json& json, double& value) {
  if (!json.is_number()) wrong_type(where, "a finite number", json);
  value = json.get<double>();
}

void read(const std::string& where, const Json& json, std::string& value) {
  if (!json.is_string()) wrong_type(where, "text", json);
  value = json.get<std::string>();
}

}  // namespace detail
}  // namespace xsa
