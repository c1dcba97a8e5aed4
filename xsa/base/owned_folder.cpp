#include "xsa/base/owned_folder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/parse_json.h"
#include "xsa/base/system.h"

namespace xsa {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = ".lock";

/// Files that commands write aside and rename, in the folders that they own.
constexpr std::array kWritten = {"recipe.json", "summary.json", "diagnose.json", "compare.json",
                                 "sweep.json",  "report.html",  "results.json"};

bool is_leftover(const fs::path& path) {
  return std::any_of(kWritten.begin(), kWritten.end(), [&](const char* name) {
    return path.filename() == std::string(name) + kPartialEnd;
  });
}

bool holds_nothing(const fs::path& folder) {
  return std::all_of(fs::directory_iterator(folder), fs::directory_iterator(),
                     [](const auto& entry) {
                       return entry.path().filename() == kLockFile || is_leftover(entry.path());
                     });
}

/// A comparison that has not ended has its recipe, which no run's is: it says how many seeds.
bool is_comparisons(const fs::path& recipe) {
  try {
    const Json json = try_parse_json(read_file(recipe));
    return json.is_object() && json.contains("compare");
  } catch (const Error&) {
    return false;
  }
}

/// "a run", and the command that makes it.
struct Maker {
  const char *what, *command;
};

Maker maker_of(FolderKind kind) {
  switch (kind) {
    case FolderKind::kFree:
      return {"nothing", "xsa"};
    case FolderKind::kRun:
      return {"a run", "xsa train"};
    case FolderKind::kComparison:
      return {"a comparison", "xsa compare"};
    case FolderKind::kSweep:
      return {"a sweep", "xsa sweep"};
    case FolderKind::kEvaluation:
      return {"an evaluation", "xsa eval"};
    case FolderKind::kShards:
      return {"prepared shards", "xsa prepare"};
    case FolderKind::kOther:
      break;
  }
  return {"other files", "others"};
}

const fs::path& made(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  check(!error, folder.string(), ": cannot create folder: ", error.message());
  return folder;
}

std::string holder_of(const fs::path& folder) {
  try {
    std::string text = read_file(folder / kLockFile);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.empty() ? "" : " (" + text + ")";
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

FolderKind kind_of(const fs::path& folder) {
  if (!fs::exists(folder)) return FolderKind::kFree;
  if (!fs::is_directory(folder)) return FolderKind::kOther;
  if (holds_nothing(folder)) return FolderKind::kFree;
  const auto has = [&](const char* file) { return fs::exists(folder / file); };
  if (has("sweep.json")) return FolderKind::kSweep;
  if (has("compare.json")) return FolderKind::kComparison;
  if (has("recipe.json") && has("manifest.json")) return FolderKind::kOther;  // a checkpoint
  if (has("recipe.json"))
    return is_comparisons(folder / "recipe.json") ? FolderKind::kComparison : FolderKind::kRun;
  if (has("results.json") || has("scores.jsonl")) return FolderKind::kEvaluation;
  return has("manifest.json") ? FolderKind::kShards : FolderKind::kOther;
}

void check_kind(const fs::path& folder, FolderKind kind) {
  const FolderKind found = kind_of(folder);
  check_usage(found == FolderKind::kFree || found == kind, folder.string(),
              ": expected a new folder or one that ", maker_of(kind).command, " made, found ",
              maker_of(found).what, "; nothing in it was touched. Choose another name or folder");
}

FolderLock::FolderLock(const fs::path& folder, const std::string& command)
    : lock_(made(folder) / kLockFile) {
  check(lock_.held(), folder.string(), ": another process is training here", holder_of(folder),
        "; wait for it, stop it, or name another folder");
  lock_.note(cat(command, ", process ", ::getpid(), ", since ", utc_now(), "\n"));
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (is_leftover(entry.path())) fs::remove(entry.path(), none);
}

}  // namespace xsa
