// What a run may do to a folder: never touch one that is not a run's, never replace a run unasked,
// never share one with another process, never go on with another recipe.
#pragma once

#include <filesystem>
#include <string>

#include "xsa/base/file_lock.h"
#include "xsa/base/json.h"

namespace xsa::train {

/// Throws UsageError unless the folder is free (missing or empty), or a run's that may be continued
/// or replaced.
void check_run_folder(const std::filesystem::path& folder, bool resume, bool overwrite);

/// Throws UsageError naming every setting in which a saved recipe differs from the one asked for,
/// except those of logging, evaluation, checkpoints, threads, cache and reading ahead. A setting
/// that the saved one lacks, since it is older, has its default. `owner` is whose recipe that is.
void check_same_recipe(const Json& saved, const Json& wanted, const std::string& owner);

/// Removes what a run wrote, recipe.json last, and nothing else.
void clear_run_folder(const std::filesystem::path& folder);

/// Keeps other processes out of a run folder (flock on its .lock) while it lives.
class FolderLock {
 public:
  /// Throws Error if another run holds the folder.
  explicit FolderLock(const std::filesystem::path& folder);

 private:
  FileLock lock_;
};

}  // namespace xsa::train
