// From files of records to requests: every record is read and checked before a model runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "xsa/tasks/request.h"
#include "xsa/tasks/task.h"

namespace xsa::tasks {

/// --data: a folder that is searched (find_records), or TASK=PATH, which goes before it.
struct DataPlaces {
  std::optional<std::filesystem::path> folder;
  std::vector<std::pair<std::string, std::filesystem::path>> named;
};

/// Throws UsageError for two folders, or a task that is unknown or named twice.
DataPlaces parse_places(const std::vector<std::string>& words);

/// Reads all records of the task and makes requests of the first `limit` (all of them without).
/// Throws Error naming file, record, field, what was expected and what came; UsageError where no
/// place is given. `warn` gets what makes the figures incomparable with published ones: another
/// split, another number of records, another edition of the text.
TaskSamples load_samples(const Task& task, const DataPlaces& places,
                         const text::Tokenizer& tokenizer, std::optional<std::int64_t> limit,
                         const std::function<void(const std::string& warning)>& warn);

/// One JSON object: task, index, choice, context, continuation, context_ids, continuation_ids.
Json to_json(const Request& request);

/// Every request as a line of JSON, in order, to a file (atomically) or "-", standard output.
void write_requests(const std::vector<TaskSamples>& tasks, const std::string& file);

}  // namespace xsa::tasks
