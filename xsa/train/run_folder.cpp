#include "xsa/train/run_folder.h"

#include <algorithm>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/train/config.h"
#include "xsa/train/tensorboard.h"

namespace xsa::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = ".lock";

/// Change only what is reported or kept, or where the same tokens lie. `threads` may change bits:
/// the run says so.
const std::vector<std::string> kMayDiffer = {"train.log_every",
                                             "train.eval_every",
                                             "train.eval_rows",
                                             "train.eval_texts",
                                             "train.eval_tasks",
                                             "train.eval_task_data",
                                             "train.eval_limit",
                                             "train.diagnose_every",
                                             "train.checkpoint_every",
                                             "train.keep_checkpoints",
                                             "train.tensorboard",
                                             "train.threads",
                                             "data.cache",
                                             "data.read_ahead"};

bool is_free(const fs::path& folder) {
  if (!fs::exists(folder)) return true;
  if (!fs::is_directory(folder)) return false;
  return std::all_of(fs::directory_iterator(folder), fs::directory_iterator(),
                     [](const auto& entry) { return entry.path().filename() == kLockFile; });
}

}  // namespace

void check_run_folder(const fs::path& folder, bool resume, bool overwrite) {
  check_usage(!resume || !overwrite,
              "expected --resume (continue) or --overwrite (begin anew), got both");
  if (is_free(folder)) return;
  check_usage(fs::exists(folder / "recipe.json"), folder.string(),
              ": expected a new folder or a run's, but this has no recipe.json; nothing in it was "
              "touched. Name another folder");
  check_usage(resume || overwrite, folder.string(),
              ": holds a run already; continue it with --resume, replace it with --overwrite, or "
              "name another folder");
}

void check_same_recipe(const Json& saved, const Json& wanted, const std::string& owner) {
  std::string differences;
  const Json defaults = to_json(RunConfig());
  check(saved.is_object(), owner,
        ": expected a recipe with the tables model, data and train, found ", saved.dump());
  for (const auto& [table, settings] : wanted.items()) {
    const Json saved_settings = saved.value(table, Json::object());
    check(saved_settings.is_object(), owner, ": its recipe's ", table,
          ": expected a table of settings, found ", saved_settings.dump());
    for (const auto& [key, value] : settings.items()) {
      const std::string name = table + "." + key;
      const Json there = saved_settings.value(key, defaults.at(table).at(key));
      if (there == value || std::count(kMayDiffer.begin(), kMayDiffer.end(), name) > 0) continue;
      differences += cat(differences.empty() ? "" : ", ", name, " (", there.dump(), " there, ",
                         value.dump(), " asked for)");
    }
  }
  check_usage(differences.empty(), owner, ": its recipe differs in ", differences,
              "; resume with its own recipe, or begin anew with --overwrite or in another folder");
}

void clear_run_folder(const fs::path& folder) {
  fs::remove(folder / "checkpoints" / "LATEST");
  fs::remove_all(folder / "checkpoints");
  for (const char* file :
       {"metrics.jsonl", kEventFile, "summary.json", "diagnose.json", "recipe.json"})
    fs::remove(folder / file);
}

FolderLock::FolderLock(const fs::path& folder) : lock_(folder / kLockFile) {
  check(lock_.held(), folder.string(),
        ": another process is training here; wait for it, stop it, or name another folder");
}

}  // namespace xsa::train
