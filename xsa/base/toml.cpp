#include "xsa/base/toml.h"

#include <toml++/toml.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/file.h"

namespace xsa {
namespace {

std::string place(const std::string& file, const toml::source_region& source) {
  return cat(file, ":", source.begin.line, ":", source.begin.column);
}

Json to_json(const toml::node& node, const std::string& file) {
  if (const auto* table = node.as_table()) {
    std::vector<std::pair<toml::source_position, std::string>> keys;  // in the file's order
    for (const auto& [key, value] : *table) keys.emplace_back(key.source().begin, key.str());
    std::sort(keys.begin(), keys.end());
    Json json = Json::object();
    for (const auto& [position, key] : keys) json[key] = to_json(*table->get(key), file);
    return json;
  }
  if (const auto* array = node.as_array()) {
    Json json = Json::array();
    for (const toml::node& value : *array) json.push_back(to_json(value, file));
    return json;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* boolean = node.as_boolean()) return boolean->get();
  throw UsageError(cat(place(file, node.source()),
                       ": dates and times are not settings; expected text (in quotes), a number, "
                       "true, false, an array or a table"));
}

}  // namespace

Json read_toml_file(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  try {
    return to_json(toml::parse(content), path.string());
  } catch (const toml::parse_error& error) {
    throw UsageError(
        cat(place(path.string(), error.source()), ": not valid TOML: ", error.description()));
  }
}

}  // namespace xsa
