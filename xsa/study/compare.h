// The main job: train with standard attention and with XSA, from the same initial weights on the
// same data in the same order, and say who wins.
#pragma once

#include <filesystem>

#include "xsa/base/json.h"
#include "xsa/study/recipe.h"

namespace xsa::study {

/// Trains both kinds once a seed into `folder` (docs/run-folder.md) and writes compare.json and
/// report.html there; returns compare.json's content. A folder that holds the same comparison,
/// whole or interrupted, is continued, also with other seeds: runs that stand under the conditions
/// asked for (xsa/base/conditions.h) are kept. Before anything is trained or replaced, the recipe,
/// the text and all that is to be measured have been opened, and the folder is locked: throws
/// UsageError if it holds runs of other conditions and `overwrite` is not set, or is no
/// comparison's; Error if the text has changed since, or another process works there. Throws
/// Interrupted after saving.
Json compare(const Recipe& recipe, const std::filesystem::path& folder, bool overwrite);

}  // namespace xsa::study
