#include "xsa/checkpoint/hugging_face.h"

#include "xsa/base/error.h"

namespace xsa::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr char kConfig[] = "config.json", kWeights[] = "model.safetensors",
               kIndex[] = "model.safetensors.index.json";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

}  // namespace

bool is_hugging_face_folder(const fs::path& path) { return is_file(path / kConfig); }

HuggingFaceFolder::HuggingFaceFolder(const fs::path& folder) : folder_(folder) {
  config_ = read_json_file(folder / kConfig);
  check(config_.is_object(), (folder / kConfig).string(), ": expected an object of settings");
  if (is_file(folder / kWeights)) {
    const SafetensorsFile& file = open(folder / kWeights);
    for (const TensorData& tensor : file.tensors()) tensors_[tensor.name] = &tensor;
  } else if (is_file(folder / kIndex)) {
    open_shards(folder / kIndex);
  } else {
    throw Error(cat(folder.string(), ": expected ", kWeights, " or ", kIndex, " beside ", kConfig,
                    is_file(folder / "pytorch_model.bin")
                        ? "; pytorch_model.bin is a pickle, which may run code: convert it with "
                          "transformers' save_pretrained"
                        : ""));
  }
}

void HuggingFaceFolder::open_shards(const fs::path& index) {
  const Json json = read_json_file(index);
  const Json shards = json.is_object() ? json.value("weight_map", Json()) : Json();
  check(shards.is_object() && !shards.empty(), index.string(),
        ": expected 'weight_map', an object from tensors to files");
  for (const auto& [tensor, file] : shards.items()) {
    check(file.is_string(), index.string(), ": expected a file's name for '", tensor, "', got ",
          file.dump());
    const fs::path name = file.get<std::string>();
    check(name.has_filename() && name == name.filename() && name != ".." && name != ".",
          index.string(), ": expected the name of a file in its own folder for '", tensor,
          "', got ", file.dump());
    tensors_[tensor] = &open(folder_ / name).at(tensor);
  }
}

std::vector<fs::path> HuggingFaceFolder::weight_files() const {
  std::vector<fs::path> paths;
  for (const auto& [name, file] : files_) paths.push_back(folder_ / name);
  return paths;
}

const SafetensorsFile& HuggingFaceFolder::open(const fs::path& path) {
  std::unique_ptr<SafetensorsFile>& file = files_[path.filename().string()];
  if (!file) file = std::make_unique<SafetensorsFile>(path);
  return *file;
}

}  // namespace xsa::checkpoint
