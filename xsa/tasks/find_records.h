// Where below a folder the records of a task lie: as Hugging Face's hub, its caches and the
// datasets library lay them out, or in one file a task.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "xsa/tasks/task.h"

namespace xsa::tasks {

struct RecordFiles {
  std::vector<std::filesystem::path> files;  // in the order of their records
  std::string split;                         // that they hold; "" where a file was named
};

/// The files of the task's split, and where there are none those of "validation". Throws Error that
/// names every place looked at, and where shards are missing.
RecordFiles find_records(const Task& task, const std::filesystem::path& folder);

/// A file, or a folder with the records of this task alone. Throws Error as find_records.
RecordFiles named_records(const Task& task, const std::filesystem::path& path);

}  // namespace xsa::tasks
