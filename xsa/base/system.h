// What machine and process this is: for reports, results and memory figures.
#pragma once

#include <cstdint>
#include <string>

#include "xsa/base/json.h"

namespace xsa {

/// {"cpu": ..., "cores": ..., "memory_bytes": ..., "os": ..., "compiler": ..., "instruction_sets"?:
/// ...}
Json machine_info();
/// UTC, "2026-11-29T19:04:43Z".
std::string utc_now();
/// The process's largest resident set so far, in bytes.
std::int64_t peak_rss_bytes();
/// Commit the program was built from, or "unknown".
std::string build_commit();

}  // namespace xsa
