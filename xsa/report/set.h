// One page and one table for any set of runs, comparisons, sweeps, evaluations, diagnoses and block
// benchmarks: the paper's figures in its arrangement, as far as there are data for them.
// docs/report.md says what stands in them. Not for a single comparison: that is comparison.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "xsa/base/json.h"

namespace xsa::report {

/// Writes the page of everything that `paths` name. A part that is missing or damaged is named on
/// the page and spoils nothing else. Throws Error where a path does not exist or no page can be
/// written.
void write_set_report(const std::vector<std::filesystem::path>& paths,
                      const std::filesystem::path& output);

/// The points of sweep.json in `folder` as lines of aligned UTF-8 text: final validation loss of
/// standard attention and of XSA, and the margin.
std::string sweep_table(const Json& sweep, const std::filesystem::path& folder);

}  // namespace xsa::report
