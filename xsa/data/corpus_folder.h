// The folder that `xsa prepare` fills: who may work in it, what it says about its making, what may
// be removed from it.
#pragma once

#include <filesystem>

#include "xsa/base/error.h"
#include "xsa/base/file_lock.h"
#include "xsa/base/json.h"

namespace xsa::data {

/// Stands until the manifest does.
inline constexpr const char* kJournalName = "journal.json";
inline constexpr int kJournalVersion = 3;

/// One process at a time works in a folder; a killed one's lock is gone with it.
class FolderLock {
 public:
  /// Throws UsageError where another process holds it.
  explicit FolderLock(const std::filesystem::path& folder);

 private:
  FileLock lock_;
};

/// What a folder says about its making, the manifest or a journal; null where it has none. Throws
/// UsageError for a file of that name that is somebody else's, and damaged() for one that is no
/// JSON; that is a discarded value where it is to be `replaced`.
Json record_in(const std::filesystem::path& folder, const char* name, bool replaced);

/// Throws Error where nothing can be written into the folder.
void check_folder_is_writable(const std::filesystem::path& folder);

/// Leaves the folder empty. `recorded`: it holds a record of ours, damaged or not. Throws
/// UsageError, before anything is removed, where it holds other files, or files of ours without a
/// record.
void clear(const std::filesystem::path& folder, bool recorded);

/// Names a record of ours that is not as it was written, and what to do.
Error damaged(const std::filesystem::path& record);

/// Calls `use`, which reads a record of ours. Throws damaged() where a field is not as it was.
template <class Use>
auto reading(const std::filesystem::path& record, const Use& use) {
  try {
    return use();
  } catch (const Json::exception&) {
    throw damaged(record);
  }
}

}  // namespace xsa::data
