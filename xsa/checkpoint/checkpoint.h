// A checkpoint is a folder: manifest.json (step, hash and size of every file), model.safetensors,
// optimizer.safetensors, state.json (random numbers, data position, metrics offset), recipe.json.
//
//   ROOT/step-000300/...    written as ROOT/step-000300.partial, synced, renamed
//   ROOT/LATEST             the newest whole one's name; written last
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/checkpoint/safetensors.h"

namespace xsa::checkpoint {

struct Contents {
  std::int64_t step = 0;
  std::vector<TensorData> model, optimizer;
  Json state, recipe;
};

/// Saves under root/step-NNNNNN, moves LATEST, then removes all but the newest `keep` (0: keeps
/// all). A kill at any moment leaves the former checkpoint and LATEST whole. Returns the new
/// folder.
std::filesystem::path save(const std::filesystem::path& root, const Contents& contents,
                           std::int64_t keep);

/// Whether Reader has something to open there, be it damaged.
bool is_run_or_checkpoint(const std::filesystem::path& path);

/// A checkpoint, open and verified.
class Reader {
 public:
  /// `path`: a checkpoint folder, a root with a LATEST, or a run folder with checkpoints/LATEST.
  /// Every file's size and hash is compared with the manifest. Throws Error naming the file, what
  /// was expected and what to do (an older whole checkpoint of the same root, if there is one).
  explicit Reader(const std::filesystem::path& path);

  const std::filesystem::path& folder() const { return folder_; }
  std::int64_t step() const { return step_; }
  const Json& state() const { return state_; }
  const Json& recipe() const { return recipe_; }
  const SafetensorsFile& model() const { return *model_; }
  const SafetensorsFile& optimizer() const { return *optimizer_; }

 private:
  std::filesystem::path folder_;
  std::int64_t step_ = 0;
  Json state_, recipe_;
  std::optional<SafetensorsFile> model_, optimizer_;
};

/// The folder LATEST names, or nothing where root holds no checkpoint yet.
std::optional<std::filesystem::path> latest(const std::filesystem::path& root);

}  // namespace xsa::checkpoint
