// The files of one run folder (docs/run-folder.md). Each reader throws Error naming the file (and
// line) that is missing or broken.
#pragma once

#include <filesystem>
#include <string>

#include "xsa/report/comparison.h"

namespace xsa::report {

/// A file that holds a JSON object.
Json read_object(const std::filesystem::path& path);

/// A member of `json`, of the type that `is_right` accepts.
const Json& member(const Json& json, const char* key, const char* expected,
                   bool (*is_right)(const Json&), const std::string& where);

/// A member that is a text, else `otherwise`.
std::string text_in(const Json& json, const char* key, const std::string& otherwise = "");

inline bool is_text(const Json& json) { return json.is_string(); }
inline bool is_integer(const Json& json) { return json.is_number_integer(); }
inline bool is_list(const Json& json) { return json.is_array(); }
inline bool is_table(const Json& json) { return json.is_object(); }

/// diagnose.json; null where there is none.
Json read_diagnose(const std::filesystem::path& path);

/// Adds the curves of metrics.jsonl. Its last line may be cut short by a kill.
void read_metrics(Run& run, const std::filesystem::path& path);

}  // namespace xsa::report
