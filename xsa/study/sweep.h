// Many trainings from one recipe: each point of a grid is a run folder, trained by a child process.
#pragma once

#include <filesystem>

#include "xsa/base/json.h"
#include "xsa/study/sweep_plan.h"

namespace xsa::study {

struct SweepOptions {
  std::int64_t jobs = 1;  // points that run at once; they share the cores out
  bool overwrite = false;
};

/// Trains every point into `folder`/points and keeps `folder`/sweep.json up to date; returns its
/// content. What is finished is kept, what was interrupted is continued, what failed is tried
/// again. A point that fails is recorded with its error and stops no other. Throws UsageError where
/// the folder holds other files, or points of another recipe and `overwrite` is not set;
/// Interrupted after every child saved.
Json sweep(const Sweep& sweep, const std::filesystem::path& folder, const SweepOptions& options);

}  // namespace xsa::study
