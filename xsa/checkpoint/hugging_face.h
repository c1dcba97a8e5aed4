// A model folder as Hugging Face's transformers writes it: config.json, and the tensors of
// model.safetensors or of the shards that model.safetensors.index.json names. No Torch here.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/checkpoint/safetensors.h"

namespace xsa::checkpoint {

class HuggingFaceFolder {
 public:
  /// Throws Error naming file, what was expected and what to do.
  explicit HuggingFaceFolder(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const Json& config() const { return config_; }
  /// That hold the tensors, sorted by name.
  std::vector<std::filesystem::path> weight_files() const;
  /// By name, of all files.
  const std::map<std::string, const TensorData*>& tensors() const { return tensors_; }

 private:
  void open_shards(const std::filesystem::path& index);
  const SafetensorsFile& open(const std::filesystem::path& path);

  std::filesystem::path folder_;
  Json config_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, const TensorData*> tensors_;
};

/// Whether the folder holds a config.json.
bool is_hugging_face_folder(const std::filesystem::path& path);

}  // namespace xsa::checkpoint
