// The runs that a folder holds, told by their files.
#pragma once

#include <filesystem>
#include <vector>

namespace xsa::checkpoint {

/// Whether xsa train made this folder: it has a recipe, and metrics, checkpoints or a summary.
bool is_run(const std::filesystem::path& folder);

/// Runs in `folder` and in the folders of it, four levels deep at most, sorted; not itself. Hidden
/// folders and links are not entered, nor what cannot be read.
std::vector<std::filesystem::path> runs_below(const std::filesystem::path& folder);

}  // namespace xsa::checkpoint
