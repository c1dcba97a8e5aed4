// One model's diagnosis (diagnose.json) as a page and as a table of comma-separated values: lines
// over layers as in the paper's Fig. 1, and a map of heads for each quantity.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "xsa/base/json.h"

namespace xsa::report {

/// What was measured on: "64 train sequences of 256 tokens"; of several that were not
/// measured alike, each kind with an "or" between. Null ones do not count; what a file does not
/// tell is left out, and "sequences" is left of none.
std::string sequences_text(const std::vector<const Json*>& diagnoses);

/// A row for each layer, its head column "all", and then one for each of its heads; what was not
/// measured is empty.
std::string diagnosis_csv(const Json& diagnosis);

/// `model`: how the page calls it.
std::string render_diagnosis(const Json& diagnosis, std::string_view model,
                             std::string_view plotly_js);

/// Whether a file with this beginning is one of these.
bool is_diagnosis_csv(std::string_view beginning);
bool is_diagnosis_page(std::string_view beginning);

/// The page with plotly in it, as a file. Throws Error if plotly is missing or it cannot be
/// written.
void write_diagnosis(const Json& diagnosis, std::string_view model,
                     const std::filesystem::path& path);

}  // namespace xsa::report
