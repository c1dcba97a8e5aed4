#include "xsa/report/run.h"

#include <limits>
#include <string_view>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/parse_json.h"
#include "xsa/report/metrics.h"

namespace xsa::report {

namespace fs = std::filesystem;

Json read_object(const fs::path& path) {
  const Json json = read_json_file(path);
  check(json.is_object(), path.string(), ": expected a JSON object, got ", json.type_name());
  return json;
}

const Json& member(const Json& json, const char* key, const char* expected,
                   bool (*is_right)(const Json&), const std::string& where) {
  const auto found = json.find(key);
  check(found != json.end(), where, ": expected \"", key, "\" (", expected, "), which is missing");
  check(is_right(*found), where, ": expected \"", key, "\" to be ", expected, ", got ",
        found->type_name());
  return *found;
}

std::string text_in(const Json& json, const char* key, const std::string& otherwise) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() && found->is_string() ? found->get<std::string>()
                                                                       : otherwise;
}

namespace {

bool is_number(const Json& json) { return json.is_number(); }
/// A loss that is not finite is written as null.
bool is_number_or_null(const Json& json) { return json.is_number() || json.is_null(); }

/// Adds a line's point with this value.
void add_point(Curve& curve, const Json& line, const Json& value, const std::string& where) {
  const double step = member(line, "step", "an integer", is_integer, where).get<double>();
  check(curve.step.empty() || curve.step.back() < step, where, ": expected steps to increase, got ",
        step, " after ", curve.step.empty() ? 0 : curve.step.back());
  check(is_number_or_null(value), where, ": expected a number or null, got ", value.type_name());
  curve.step.push_back(step);
  curve.tokens.push_back(member(line, "tokens", "a number", is_number, where).get<double>());
  curve.elapsed_s.push_back(number_at(line, "elapsed_s"));
  curve.loss.push_back(value.is_number() ? value.get<double>()
                                         : std::numeric_limits<double>::quiet_NaN());
}

void add_line(Run& run, const Json& line, const std::string& where) {
  check(line.is_object(), where, ": expected a JSON object, got ", line.type_name());
  const Json& type = member(line, "type", "text", is_text, where);
  if (type == "train" || type == "validation") {
    const Json& loss = member(line, "loss", "a number or null", is_number_or_null, where);
    add_point(type == "train" ? run.train : run.validation, line, loss, where);
  } else if (type == "eval") {
    const auto name = member(line, "name", "text", is_text, where).get<std::string>();
    for (const auto& [metric, value] :
         member(line, "metrics", "an object", is_table, where).items())
      add_point(run.evaluations[{name, metric}], line, value, where);
  } else if (type == "diagnose") {
    member(line, "step", "an integer", is_integer, where);
    member(line, "layers", "a list", is_list, where);
    run.diagnoses.push_back(line);
  }
}

/// Lines of validation and evaluation carry no time: they get that of the last train line up to
/// their step.
void set_times(Curve& curve, const Curve& train) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < curve.step.size(); ++i) {
    while (next < train.step.size() && train.step[next] <= curve.step[i]) ++next;
    if (next > 0) curve.elapsed_s[i] = train.elapsed_s[next - 1];
  }
}

}  // namespace

void read_metrics(Run& run, const fs::path& path) {
  const std::string content = read_file(path);
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < content.size();) {
    ++number;
    const std::size_t newline = content.find('\n', begin);
    const bool cut_short = newline == std::string::npos;
    const std::size_t end = cut_short ? content.size() : newline;
    const std::string_view text = std::string_view(content).substr(begin, end - begin);
    begin = end + 1;
    const std::string where = cat(path.string(), ":", number);
    const Json line = try_parse_json(text);
    if (line.is_discarded() && cut_short) break;
    check(!line.is_discarded(), where, ": expected a JSON object on each line, got '",
          text.substr(0, 60), "'");
    add_line(run, line, where);
  }
  set_times(run.validation, run.train);
  for (auto& [key, curve] : run.evaluations) set_times(curve, run.train);
}

Json read_diagnose(const fs::path& path) {
  if (!fs::exists(path)) return nullptr;
  const Json diagnose = read_object(path);
  if (diagnose.contains("attention")) member(diagnose, "attention", "text", is_text, path.string());
  for (const Json& layer : member(diagnose, "layers", "a list", is_list, path.string())) {
    check(layer.is_object(), path.string(), ": expected an object for each layer, got ",
          layer.type_name());
    member(layer, "layer", "an integer", is_integer, path.string());
  }
  return diagnose;
}

}  // namespace xsa::report
