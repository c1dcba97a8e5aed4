// One model's results.json, of xsa eval or of lm-evaluation-harness.
#pragma once

#include <filesystem>

#include "xsa/report/parts.h"

namespace xsa::report {

/// Throws Error where no task has an accuracy; `path` is the file's, for messages and names.
Evaluated read_evaluation(const Json& results, const std::filesystem::path& path);

}  // namespace xsa::report
