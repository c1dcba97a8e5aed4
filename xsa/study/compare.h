// The main job: train with standard attention and with XSA, from the same initial weights on the
// same data in the same order, and say who wins.
#pragma once

#include <filesystem>

#include "xsa/base/json.h"
#include "xsa/study/recipe.h"

namespace xsa::study {

/// Trains both kinds once a seed into `folder` (docs/run-folder.md) and writes compare.json and
/// report.html there; returns compare.json's content. A folder that holds the same comparison,
/// whole or interrupted, is continued: what is finished is kept. Throws UsageError if it holds
/// another one and `overwrite` is not set; Interrupted after saving.
Json compare(const Recipe& recipe, const std::filesystem::path& folder, bool overwrite);

/// What a finished training adds to its run folder: diagnose.json.
void diagnose_into(const std::filesystem::path& run_folder, const model::Gpt& model,
                   const data::Dataset& dataset, const diagnose::DiagnoseConfig& config);

}  // namespace xsa::study
