#include "xsa/train/run_folder.h"

#include "xsa/base/error.h"
#include "xsa/train/conditions.h"
#include "xsa/train/tensorboard.h"

namespace xsa::train {
namespace {

namespace fs = std::filesystem;

/// Whether and how what differs can be had: no command gives a run two sets of conditions.
constexpr const char* kRemedy =
    "; resume with what it has, or begin anew with --overwrite, not with --resume, or in another "
    "folder";

}  // namespace

void check_run_folder(const fs::path& folder, bool resume, bool overwrite) {
  check_usage(!resume || !overwrite,
              "expected --resume (continue) or --overwrite (begin anew), got both");
  check_kind(folder, FolderKind::kRun);
  check_usage(kind_of(folder) == FolderKind::kFree || resume || overwrite, folder.string(),
              ": holds a run already; continue it with --resume, replace it with --overwrite, or "
              "name another folder");
}

void check_same_recipe(const Json& saved, const Json& wanted, const std::string& owner) {
  check(saved.is_object(), owner,
        ": expected a recipe with the tables model, data and train, found ", saved.dump());
  for (const char* const table : {"model", "data", "train"}) {
    const Json settings = saved.value(table, Json::object());
    check(settings.is_object(), owner, ": its recipe's ", table,
          ": expected a table of settings, found ", settings.dump());
  }
  Conditions there{settings(RunConfig())};  // what an older recipe lacks has its default
  const Conditions here{settings(run_config_from_json(wanted))};
  const Conditions recipe = conditions_of(saved, nullptr);
  for (const auto& [name, value] : recipe.values.items())
    if (there.values.contains(name)) there.values[name] = value;
  const auto found = differences(there, here);
  check_usage(found.empty(), owner, ": its recipe differs in ", list(found, "asked for"), kRemedy);
}

Conditions recorded(const Json& recipe, const Json& summary, const Json& wanted) {
  Conditions there = conditions_of(recipe, summary);
  if (there.whole) return there;
  for (const auto& [name, value] : wanted.items())
    if (!there.values.contains(name)) there.values[name] = value;
  return there;
}

void check_same_conditions(const Conditions& saved, const Json& wanted, const std::string& owner) {
  const auto found = differences(saved, {wanted});
  for (const Difference& one : found)
    check(one.name != "data_sha256", owner, ": was trained on another text than data.source names ",
          "now: ", list({one}, "now"), "; bring the old text back", kRemedy);
  check_usage(found.empty(), owner, ": was measured in another way: ", list(found, "asked for"),
              kRemedy);
}

void check_same_so_far(const Json& saved, const Json& wanted, const std::string& owner) {
  Conditions there;
  Json here = Json::object();
  for (const auto& [name, value] : saved.items()) {
    if (!wanted.contains(name)) continue;
    there.values[name] = value;
    here[name] = wanted[name];
  }
  check_same_conditions(there, here, owner);
}

Json finished_summary(const fs::path& folder, const Json& wanted) {
  const Json summary = read_json_file(folder / "summary.json");
  Json asked = wanted;
  settle_origin(asked, summary.is_object() ? summary.value("conditions", Json()) : Json());
  check_same_conditions(recorded(read_json_file(folder / "recipe.json"), summary, asked), asked,
                        folder.string());
  return summary;
}

void clear_run_folder(const fs::path& folder) {
  fs::remove(folder / "checkpoints" / "LATEST");
  fs::remove_all(folder / "checkpoints");
  for (const char* file :
       {"metrics.jsonl", kEventFile, "summary.json", "diagnose.json", "recipe.json"})
    fs::remove(folder / file);
}

}  // namespace xsa::train
