// What machine and process this is: for reports, results and memory figures.
#pragma once

#include <cstdint>
#include <string>

#include "xsa/base/control_group.h"
#include "xsa/base/json.h"

namespace xsa {

/// Cores that this process may use: those of its affinity, and no more than its control group's
/// share of CPU time, rounded up: with a quota of 1.5 cores two threads get all of it, one would
/// leave a third.
std::int64_t allowed_cores(const ControlGroupLimits& limits = control_group_limits());
/// How many threads to take where nobody said: OMP_NUM_THREADS if it is set, else allowed_cores();
/// no more than OMP_THREAD_LIMIT. Throws UsageError for more than kMostThreads.
std::int64_t default_threads();
/// `wanted`, a setting of which 0 stands for default_threads().
std::int64_t threads_or_default(std::int64_t wanted);

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
