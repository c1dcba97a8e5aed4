// A checkpoint is a folder: manifest.json (step, hash and size of every file), model.safetensors,
// optimizer.safetensors, state.json (random numbers, data position, metrics offset), recipe.json.
//
//   ROOT/step-000300/...    written as ROOT/step-000300.partial, synced, renamed
//   ROOT/BEST               the name of the one with the lowest validation loss, where it is kept
//   ROOT/LATEST             the newest whole one's name; written last
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/checkpoint/names.h"
#include "xsa/checkpoint/safetensors.h"

namespace xsa::checkpoint {

struct Contents {
  std::int64_t step = 0;
  std::vector<TensorData> model, optimizer;
  Json state, recipe;
  std::optional<std::int64_t> best_step;  // whose checkpoint is kept whatever comes after it
};

/// Saves under root/step-NNNNNN, moves BEST and LATEST, then removes all but the best one and the
/// newest `keep` (0: keeps all). A kill at any moment leaves the former checkpoint and LATEST
/// whole. Returns the new folder.
std::filesystem::path save(const std::filesystem::path& root, const Contents& contents,
                           std::int64_t keep);

struct Opened;

/// A checkpoint, open and verified.
class Reader {
 public:
  /// `path`: a checkpoint folder, a root with a LATEST, or a run folder with checkpoints/LATEST.
  /// Every file's size and hash is compared with the manifest. Throws Error naming the file, what
  /// was expected and what to do (an older whole checkpoint of the same root, if there is one).
  explicit Reader(const std::filesystem::path& path);
  explicit Reader(Opened opened);

  const std::filesystem::path& folder() const { return folder_; }
  std::int64_t step() const { return step_; }
  /// SHA-256 of model.safetensors.
  const std::string& model_sha256() const { return model_sha256_; }
  const Json& state() const { return state_; }
  const Json& recipe() const { return recipe_; }
  const SafetensorsFile& model() const { return model_; }
  const SafetensorsFile& optimizer() const { return optimizer_; }

 private:
  std::filesystem::path folder_;
  std::int64_t step_ = 0;
  std::string model_sha256_;
  Json state_, recipe_;
  SafetensorsFile model_, optimizer_;
};

/// To go on from: what LATEST names or, where it is missing or what it names is damaged, the newest
/// whole one; `tell` is then told so. Nothing where root holds no checkpoint. Throws Error where
/// none is whole, and for a LATEST that names none.
std::optional<Reader> newest_whole(const std::filesystem::path& root,
                                   const std::function<void(const std::string&)>& tell);

}  // namespace xsa::checkpoint
