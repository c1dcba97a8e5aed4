// A folder that a command owns: what kind it is of, and who works in it. A folder of one kind is
// never taken for another, and one process at a time writes there.
#pragma once

#include <filesystem>
#include <string>

#include "xsa/base/file_lock.h"

namespace xsa {

enum class FolderKind {
  kFree,  // missing or empty
  kRun,
  kComparison,
  kSweep,
  kEvaluation,
  kShards,
  kOther,
};

/// By its content. A lock, and what a killed process left of a file that it was writing, count as
/// nothing.
FolderKind kind_of(const std::filesystem::path& folder);

/// Throws UsageError unless the folder is free or of this kind.
void check_kind(const std::filesystem::path& folder, FolderKind kind);

/// Keeps other processes out of a folder (flock on its .lock) while it lives.
class FolderLock {
 public:
  /// Makes the folder where there is none, and removes what a killed process left of a file that it
  /// was writing. `command` tells others who holds it: "xsa train". Throws Error if another process
  /// does, naming it.
  FolderLock(const std::filesystem::path& folder, const std::string& command);

 private:
  FileLock lock_;
};

}  // namespace xsa
