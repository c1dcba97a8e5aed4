#include "xsa/report/recipe.h"

#include <algorithm>
#include <set>

#include "xsa/base/error.h"
#include "xsa/report/metrics.h"

namespace xsa::report {
namespace {

using Flat = std::vector<std::pair<std::string, Json>>;

Flat flatten(const Json& recipe) {
  Flat flat;
  for (const auto& [table, values] : recipe.items()) {
    if (!values.is_object()) {
      flat.emplace_back(table, values);
      continue;
    }
    for (const auto& [key, value] : values.items()) flat.emplace_back(table + "." + key, value);
  }
  return flat;
}

std::string text_in(const Flat& flat, const std::string& key) {
  const auto found =
      std::find_if(flat.begin(), flat.end(), [&](const auto& entry) { return entry.first == key; });
  return found == flat.end() ? "–"
                             : found->second.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Run* find_run(const std::vector<Run>& runs, std::string_view attention) {
  const auto run = std::find_if(runs.begin(), runs.end(), [&](const Run& candidate) {
    return candidate.record.attention == attention;
  });
  return run == runs.end() ? nullptr : &*run;
}

/// Two recipes side by side, whatever keys either has.
std::vector<Setting> side_by_side(const Json& standard, const Json& exclusive) {
  const Flat left = flatten(standard), right = flatten(exclusive);
  std::vector<Setting> settings;
  std::set<std::string> seen;
  for (const Flat* const flat : {&left, &right}) {
    for (const auto& entry : *flat) {
      const std::string& key = entry.first;
      if (!seen.insert(key).second) continue;
      Setting setting{key, text_in(left, key), text_in(right, key)};
      setting.differs = setting.standard != setting.exclusive;
      settings.push_back(setting);
    }
  }
  return settings;
}

std::string shell_quoted(const std::string& text) {
  const bool plain =
      !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char letter) {
        return std::isalnum(letter) ||
               std::string_view("-_=./,:+@%").find(static_cast<char>(letter)) !=
                   std::string_view::npos;
      });
  if (plain) return text;
  std::string quoted = "'";
  for (const char letter : text)
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

}  // namespace

std::vector<Setting> settings_of(const Comparison& comparison) {
  const std::vector<Run>& runs = comparison.runs;
  const Run* const standard = find_run(runs, "standard");
  const Run* const exclusive = find_run(runs, "exclusive");
  const Run& any = standard != nullptr ? *standard : *exclusive;
  std::vector<Setting> settings = side_by_side(standard ? standard->recipe : any.recipe,
                                               exclusive ? exclusive->recipe : any.recipe);
  for (const Run& left : runs) {
    for (const Run& right : runs) {
      if (left.record.attention != "standard" || right.record.attention != "exclusive" ||
          left.record.seed != right.record.seed)
        continue;
      for (const Setting& pair : side_by_side(left.recipe, right.recipe))
        for (Setting& setting : settings)
          if (setting.key == pair.key) setting.differs = setting.differs || pair.differs;
    }
  }
  return settings;
}

std::string repeat_command(const Comparison& comparison) {
  const Json& info = comparison.info;
  if (info.contains("command") && info["command"].is_string())
    return info["command"].get<std::string>();
  std::set<std::int64_t> seeds;
  for (const Run& run : comparison.runs) seeds.insert(run.record.seed);
  std::string command = cat("xsa compare --name=", shell_quoted(info["name"].get<std::string>()),
                            " --seeds=", seeds.size());
  const bool whole = info.contains("recipe") && info["recipe"].is_object();
  for (const auto& [key, value] : flatten(whole ? info["recipe"] : comparison.runs[0].recipe)) {
    if (key == "model.attention" || key == "compare.seeds") continue;
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    command += " \\\n  --" + key + "=" + shell_quoted(text);
  }
  return command;
}

}  // namespace xsa::report
