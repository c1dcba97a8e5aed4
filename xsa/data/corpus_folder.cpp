#include "xsa/data/corpus_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "xsa/base/file.h"
#include "xsa/base/parse_json.h"
#include "xsa/data/both_sides.h"
#include "xsa/data/prepare.h"
#include "xsa/data/shard_writer.h"
#include "xsa/data/verify.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

/// What a kill left of the first journal.
bool begins_a_journal(const fs::path& path) {
  const std::string start = Json({{"version", kJournalVersion}}).dump(2);
  const std::string text = read_file(path);
  const std::string_view begin =
      std::string_view(start).substr(0, start.find_last_not_of("\n}") + 1);
  return text.starts_with(begin) || begin.starts_with(text);
}

/// The files of a folder. `recorded`: it holds a record of ours. Throws UsageError where there are
/// others than ours, or files of ours without a record.
std::vector<fs::path> own_files(const fs::path& folder, bool recorded) {
  const auto partial = [](const char* name) { return std::string(name) + ".partial"; };
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool known = is_token_file(name) || name == kManifestName || name == kJournalName ||
                       name == partial(kManifestName) || name == partial(kJournalName) ||
                       name == kVerifiedName || name == partial(kVerifiedName);
    const bool ours =
        recorded
            ? (known && entry.is_regular_file()) ||
                  (name == kSidesName && entry.is_directory() && !entry.is_symlink())
            : name == kVerifiedName || (name == partial(kJournalName) && entry.is_regular_file() &&
                                        begins_a_journal(entry.path()));
    check_usage(ours, folder.string(),
                ": expected an empty folder, or one that xsa prepare made, but it holds ", name,
                "; name another folder with --output");
    files.push_back(entry.path());
  }
  return files;
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) : lock_(folder) {
  check_usage(lock_.held(), folder.string(),
              ": another xsa prepare is at work in this folder; wait for it, or name another");
}

Json record_in(const fs::path& folder, const char* name, bool replaced) {
  const fs::path path = folder / name;
  if (!fs::exists(path)) return nullptr;
  const std::string text = read_file(path);
  Json record = try_parse_json(text);
  if (record.is_discarded() && !Json::accept(text)) {
    if (replaced) return record;
    own_files(folder, /*recorded=*/true);  // with others there, --overwrite would not help
    throw damaged(path);
  }
  const bool ours = record.is_object() && record.contains("sources") &&
                    record.contains("settings") && record["settings"].contains("shard-tokens");
  check_usage(ours, path.string(), ": expected a file that xsa prepare made, got another; name ",
              "another folder with --output, or move the file away");
  return record;
}

void check_folder_is_writable(const fs::path& folder) {
  const bool may_write = ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
  check(may_write, folder.string(),
        ": expected a folder that may be written to: ", may_write ? "" : std::strerror(errno),
        "; name another with --output");
}

void clear(const fs::path& folder, bool recorded) {
  std::vector<fs::path> files = own_files(folder, recorded);
  // The record goes last: a kill in between leaves a folder that can be cleared again.
  std::stable_partition(files.begin(), files.end(), [](const fs::path& file) {
    const std::string name = file.filename().string();
    return is_token_file(name) || name == kSidesName;
  });
  for (const fs::path& file : files) fs::remove_all(file);
}

Error damaged(const fs::path& path) {
  return Error(cat(path.string(), ": expected a whole record of xsa prepare, got a damaged one",
                   "; add --overwrite to begin anew"));
}

}  // namespace xsa::data
