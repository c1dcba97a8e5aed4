#include "xsa/study/same_conditions.h"

#include <optional>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/parse_json.h"
#include "xsa/checkpoint/names.h"
#include "xsa/train/conditions.h"
#include "xsa/train/run_folder.h"

namespace xsa::study {

namespace fs = std::filesystem;

namespace {

/// What the newest checkpoint of a run that has not ended recorded; null where none can be read:
/// training looks there again.
Json saved_conditions(const fs::path& run_folder) {
  try {
    const std::optional<fs::path> newest = checkpoint::latest(run_folder / "checkpoints");
    if (!newest) return nullptr;
    const Json state = read_json_file(*newest / "state.json");
    return state.is_object() ? state.value("conditions", Json()) : Json();
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

std::string begun_from(const Json& recipe) {
  const Json train = recipe.is_object() ? recipe.value("train", Json()) : Json();
  const Json from = train.is_object() ? train.value("from", Json()) : Json();
  return from.is_string() ? from.get<std::string>() : "";
}

SameConditions::SameConditions(fs::path folder, std::string source)
    : folder_(std::move(folder)), source_(std::move(source)) {
  const fs::path path = folder_ / "recipe.json";
  const Json recipe = fs::exists(path) ? try_parse_json(read_file(path)) : Json();
  if (recipe.is_object()) diagnose_ = recipe.value("diagnose", Json::object());
}

void SameConditions::want(const std::string& run, const train::RunConfig& config,
                          const data::Dataset& dataset, const Json& measured) {
  wanted_[run] = train::conditions(config, dataset, measured);
  from_[run] = config.train.from;
}

std::vector<Difference> SameConditions::differences_of(const std::string& run,
                                                       const fs::path& run_folder) const {
  const auto wanted = wanted_.find(run);
  if (wanted == wanted_.end() || !fs::exists(run_folder / "recipe.json")) return {};
  const Json recipe = read_json_file(run_folder / "recipe.json");
  check(recipe.is_object(), (run_folder / "recipe.json").string(), ": expected a recipe, found ",
        recipe.type_name());
  const bool has_ended = fs::exists(run_folder / "summary.json");
  Conditions there;
  Json here = wanted->second;
  if (has_ended) {
    const Json summary = read_json_file(run_folder / "summary.json");
    train::settle_origin(here, summary.is_object() ? summary.value("conditions", Json()) : Json());
    there = train::recorded(recipe, summary, here);
    if (!there.whole && diagnose_.is_object())
      for (const auto& [name, value] : diagnose_.items())
        if (here.contains("diagnose." + name)) there.values["diagnose." + name] = value;
    train::settle_origin(here, there.values);
  } else {
    // Its recipe tells its settings, its newest checkpoint what it measured so far and on which
    // text.
    there = conditions_of(recipe, nullptr);
    const Json settings = train::settings(train::RunConfig());
    for (const auto& [name, value] : settings.items())
      if (!there.values.contains(name)) there.values[name] = value;
    for (const auto& [name, value] : wanted->second.items())
      if (!settings.contains(name)) here.erase(name);
    const Json saved = saved_conditions(run_folder);
    if (saved.is_object())
      for (const auto& [name, value] : saved.items())
        if (wanted->second.contains(name)) {
          there.values[name] = value;
          here[name] = wanted->second[name];
        }
    train::settle_origin(here, there.values);
  }
  std::vector<Difference> found = differences(there, {here});
  // What lies at an origin may change after a run began with it; another origin is another run.
  const std::string began = begun_from(recipe), asked = from_.at(run);
  if (!began.empty() && !asked.empty() && began != asked)
    found.push_back({"train.from", "'" + began + "'", "'" + asked + "'"});
  return found;
}

void SameConditions::refuse(const std::string& run, const std::vector<Difference>& found) const {
  for (const Difference& one : found)
    check(one.name != "data_sha256", folder_.string(), ": ", run, " was trained on another text: '",
          source_, "' changed in between (", list({one}, "now"),
          "); --overwrite trains all anew, another --name keeps what is here");
  check_usage(found.empty(), folder_.string(), ": ", run,
              " stands under other conditions: ", list(found, "asked for"),
              "; it cannot stand beside what is asked for. Choose another --name, or --overwrite "
              "to train all anew");
}

}  // namespace xsa::study
