// One page and one table for any set of runs, comparisons, sweeps, evaluations, diagnoses and block
// benchmarks: the paper's figures in its arrangement, as far as there are data for them.
// docs/report.md says what stands in them. Not for a single comparison: that is comparison.h.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/report/figure.h"
#include "xsa/report/parts.h"

namespace xsa::report {

struct SetReport {
  Parts parts;
  std::vector<Figure> figures;
};

/// Everything that `paths` name. A part that is missing or damaged is among the problems and spoils
/// nothing else. Throws Error where a path does not exist.
SetReport read_set(const std::vector<std::filesystem::path>& paths);

/// {"problems": [...], "figures": [...]}
Json to_json(const SetReport& report);

/// The page's HTML around the given plotly.min.js.
std::string render_set(const SetReport& report, std::string_view plotly_js);

/// Throws Error where there is no plotly.min.js (as write_report does).
void write_set_page(const SetReport& report, const std::filesystem::path& output);

/// Both at once.
void write_set_report(const std::vector<std::filesystem::path>& paths,
                      const std::filesystem::path& output);

/// The data of each figure and table, as files in `folder`: ID.csv, ID-table.csv.
std::map<std::filesystem::path, std::string> csv_files(const SetReport& report,
                                                       const std::filesystem::path& folder);

/// The points of sweep.json in `folder` as lines of aligned UTF-8 text: final validation loss of
/// standard attention and of XSA, and the margin (without pairs: how each setting compares with the
/// first); then the points that are not done.
std::string sweep_table(const Json& sweep, const std::filesystem::path& folder);

}  // namespace xsa::report
