// How the checkpoints of a run are called, on the disk and by users: ROOT/step-000300, ROOT/LATEST,
// ROOT/BEST; RUN@300, RUN@latest, RUN@best.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace xsa::checkpoint {

inline constexpr char kLatest[] = "LATEST", kBest[] = "BEST", kManifest[] = "manifest.json";
inline constexpr std::string_view kStepPrefix = "step-";

std::string folder_name(std::int64_t step);
/// The step of a folder name, or nothing where it is not exactly one that save gives.
std::optional<std::int64_t> step_of(const std::string& name);

/// As fs::exists, but what cannot be told is an Error, e.g. a folder without permission.
bool is_there(const std::filesystem::path& path);

/// Steps of the checkpoints in root, ascending; whole or not.
std::vector<std::int64_t> steps_in(const std::filesystem::path& root);
/// The same, the newest first as seen from `step`. Those above it belong to a course that the run
/// has left (it went back to an older checkpoint): they count as the oldest.
std::vector<std::int64_t> newest_first(const std::filesystem::path& root, std::int64_t step);

/// Is it a checkpoint's own folder, not one that holds several?
bool is_checkpoint(const std::filesystem::path& path);
/// The folder of checkpoints that `path` is, holds or lies in.
std::filesystem::path root_of(const std::filesystem::path& path);

/// The folder LATEST names, or nothing where root holds no checkpoint yet.
std::optional<std::filesystem::path> latest(const std::filesystem::path& root);
/// The folder BEST names, or nothing where there is none.
std::optional<std::filesystem::path> best(const std::filesystem::path& root);

/// Whether Reader has something to open there, be it damaged.
bool is_run_or_checkpoint(const std::filesystem::path& path);

/// The checkpoint that RUN@best, RUN@latest or RUN@300 names; any other path, and one that is there
/// by this very name, as it is. Throws UsageError naming the checkpoints that the run has where it
/// lacks that one.
std::filesystem::path named_checkpoint(const std::filesystem::path& path);

}  // namespace xsa::checkpoint
