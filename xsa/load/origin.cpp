#include "xsa/load/origin.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/hash.h"
#include "xsa/checkpoint/hugging_face.h"
#include "xsa/load/gpt2.h"
#include "xsa/load/load.h"
#include "xsa/model/parameters.h"

namespace xsa::load {
namespace {

namespace fs = std::filesystem;

using Sizes = std::map<std::string, std::vector<std::int64_t>>;

Sizes sizes_of(const model::ModelConfig& config) {
  Sizes sizes;
  for (const model::ParameterSpec& spec : model::parameter_specs(config))
    sizes[spec.name] = spec.sizes;
  return sizes;
}

/// Whether each of the weights has its place.
bool fit(const Sizes& weights, const Sizes& places) {
  return std::ranges::all_of(weights, [&](const auto& weight) {
    const auto place = places.find(weight.first);
    return place != places.end() && place->second == weight.second;
  });
}

/// "transformer.h.3.attn.strength" -> "attn.strength": the same in each layer.
std::string kind_of(const std::string& name) {
  constexpr std::string_view kBlock = "transformer.h.";
  if (!name.starts_with(kBlock)) return name;
  return name.substr(name.find('.', kBlock.size()) + 1);
}

std::string hash_of(const checkpoint::HuggingFaceFolder& folder) {
  std::string hashes;
  const std::vector<fs::path> files = folder.weight_files();
  for (const fs::path& file : files) {
    const std::string hash = FileHash(file).hex();
    if (files.size() == 1) return hash;
    hashes += cat(hash, "  ", file.filename().string(), "\n");
  }
  return sha256(std::as_bytes(std::span(hashes)));
}

}  // namespace

Origin origin_of(const fs::path& path) {
  if (checkpoint::is_hugging_face_folder(path)) {
    const checkpoint::HuggingFaceFolder folder(path);
    const std::string name = (path / "config.json").string();
    const model::ModelConfig config = gpt2_config(folder.config(), name);
    return {config, hugging_face_tokenizer(path, config)};
  }
  const Loaded loaded = load(path);
  return {loaded.model.config(), loaded.tokenizer};
}

void check_fits(const model::ModelConfig& there, const model::ModelConfig& wanted,
                const std::string& path) {
  const Sizes weights = sizes_of(there);
  if (fit(weights, sizes_of(wanted))) return;
  const Json before = to_json(there), now = to_json(wanted);
  std::string guilty, others;
  for (const auto& [key, value] : now.items()) {
    if (before.at(key) == value) continue;
    const std::string difference =
        cat("model.", key, " (", before.at(key).dump(), " there, ", value.dump(), " asked for)");
    model::ModelConfig alone = there;
    apply_json(alone, {{key, value}}, "model");
    std::string& list = fit(weights, sizes_of(alone)) ? others : guilty;
    list += cat(list.empty() ? "" : ", ", difference);
  }
  throw UsageError(cat(path, ": expected settings that its weights fit; they would be lost or ",
                       "change their shapes by ", guilty.empty() ? others : guilty,
                       "; leave these as they are there, or train without --from"));
}

Begun begin_with(const model::Gpt& model, const fs::path& path) {
  const Loaded loaded = load(path);
  check_fits(loaded.model.config(), model.config(), path.string());
  std::map<std::string, at::Tensor> weights;
  for (const model::NamedTensor& parameter : loaded.model.parameters())
    weights[parameter.name] = parameter.tensor;
  const at::NoGradGuard guard;
  std::vector<std::string> fresh;
  for (const model::NamedTensor& parameter : model.parameters()) {
    const auto found = weights.find(parameter.name);
    if (found != weights.end()) {
      parameter.tensor.copy_(found->second);
    } else if (parameter.name == model::kHead) {
      parameter.tensor.copy_(weights.at(model::kEmbedding));
    } else if (const std::string kind = kind_of(parameter.name);
               std::ranges::find(fresh, kind) == fresh.end()) {
      fresh.push_back(kind);
    }
  }
  Begun begun;
  begun.path = fs::absolute(loaded.folder).lexically_normal().string();
  begun.step = loaded.step;
  begun.weights_sha256 = loaded.weights_sha256;
  if (begun.weights_sha256.empty())
    begun.weights_sha256 = hash_of(checkpoint::HuggingFaceFolder(path));
  begun.text = loaded.step > 0 ? cat("the weights of ", path.string(), ", step ", loaded.step)
                               : cat("the weights of ", path.string());
  for (const std::string& kind : fresh)
    begun.text += cat(kind == fresh.front() ? "; new, with initial values: " : ", ", kind);
  return begun;
}

}  // namespace xsa::load
