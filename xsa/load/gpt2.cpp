#include "xsa/load/gpt2.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "xsa/base/error.h"
#include "xsa/load/tensors.h"

namespace xsa::load {
namespace {

using checkpoint::TensorData;

constexpr std::string_view kPrefix = "transformer.", kHead = "lm_head.weight";

/// config.json, setting by setting. What is missing has GPT2Config's default.
class Settings {
 public:
  Settings(const Json& json, const std::string& name) : json_(json), name_(name) {}

  template <class T>
  T get(const char* key, const T& otherwise) const {
    const auto found = json_.find(key);
    if (found == json_.end() || found->is_null()) return otherwise;
    check(fits<T>(*found), name_, ": ", key, ": expected a value like ", Json(otherwise).dump(),
          ", got ", found->dump());
    return found->get<T>();
  }
  std::int64_t size(const char* key, std::int64_t otherwise) const {
    const auto value = get<std::int64_t>(key, otherwise);
    check(value >= 1 && value <= (1 << 24), name_, ": ", key, ": expected 1 to ", 1 << 24, ", got ",
          value);
    return value;
  }
  /// Throws unless the setting is missing, null or `expected`.
  void only(const char* key, const Json& expected) const {
    const auto found = json_.find(key);
    check(found == json_.end() || found->is_null() || *found == expected, name_, ": ", key,
          ": only ", expected.dump(), " is known, got ", found == json_.end() ? "" : found->dump());
  }

 private:
  template <class T>
  static bool fits(const Json& value) {
    if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
    if constexpr (std::is_same_v<T, std::int64_t>) return value.is_number_integer();
    if constexpr (std::is_same_v<T, double>) return value.is_number();
    return value.is_string();
  }

  const Json& json_;
  const std::string& name_;
};

std::string feed_forward_of(const std::string& activation, const std::string& name) {
  if (activation == "gelu_new" || activation == "gelu_pytorch_tanh" || activation == "gelu_fast")
    return "gelu_tanh";
  if (activation == "gelu" || activation == "gelu_python") return "gelu";
  throw Error(cat(name,
                  ": activation_function: expected gelu_new, gelu_pytorch_tanh, gelu_fast, "
                  "gelu or gelu_python, got '",
                  activation, "'"));
}

/// What the layer's scores are multiplied by, apart from 1 / sqrt(D): it goes into the queries.
double query_factor(const Settings& settings, std::int64_t layer, std::int64_t head_dim) {
  double factor = 1;
  if (!settings.get("scale_attn_weights", true)) factor *= std::sqrt(head_dim);
  if (settings.get("scale_attn_by_inverse_layer_idx", false))
    factor /= static_cast<double>(layer + 1);
  return factor;
}

/// GPT-2's matrices are stored [in, out] (Conv1D).
bool is_transposed(std::string_view name) {
  constexpr std::array<std::string_view, 4> kEnds = {"attn.c_attn.weight", "attn.c_proj.weight",
                                                     "mlp.c_fc.weight", "mlp.c_proj.weight"};
  return std::any_of(kEnds.begin(), kEnds.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

/// Old files keep the causal mask among the weights.
bool is_mask(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

/// The folder's tensors by the names of Gpt: with the prefix, which some files leave out.
class Weights {
 public:
  explicit Weights(const checkpoint::HuggingFaceFolder& folder) : folder_(folder.folder()) {
    for (const auto& [name, tensor] : folder.tensors()) {
      if (is_mask(name)) continue;
      const std::string full =
          name.starts_with(kPrefix) || name == kHead ? name : cat(kPrefix, name);
      check(tensors_.emplace(full, tensor).second, folder_.string(), ": holds '", full,
            "' twice, with and without its prefix");
    }
  }

  at::Tensor take(const std::string& name, at::IntArrayRef sizes) {
    const auto found = tensors_.find(name);
    check(found != tensors_.end(), folder_.string(), ": expected a tensor '", name,
          "', which is missing");
    const TensorData& data = *found->second;
    const bool transposed = is_transposed(name);
    std::vector<std::int64_t> expected = sizes.vec();
    if (transposed) std::swap(expected[0], expected[1]);
    check(data.shape == expected, folder_.string(), ": '", data.name, "': expected ",
          Json(expected).dump(), " as config.json says, got ", Json(data.shape).dump());
    tensors_.erase(found);
    const at::Tensor value = to_float(data, folder_.string());
    return transposed ? value.t() : value;
  }
  bool has(std::string_view name) const { return tensors_.contains(std::string(name)); }
  void check_all_taken() const {
    if (tensors_.empty()) return;
    throw Error(cat(folder_.string(), ": expected GPT-2's tensors alone, got also '",
                    tensors_.begin()->second->name, "' (", tensors_.size(),
                    " such); is it another kind of model?"));
  }

 private:
  std::filesystem::path folder_;
  std::map<std::string, const TensorData*> tensors_;
};

}  // namespace

model::ModelConfig gpt2_config(const Json& json, const std::string& name) {
  const Settings settings(json, name);
  const auto type = settings.get<std::string>("model_type", "");
  check(type == "gpt2", name, ": model_type: only gpt2 is known, got '", type, "'");
  settings.only("add_cross_attention", false);
  settings.only("quantization_config", Json());

  model::ModelConfig config;
  config.layers = settings.size("n_layer", 12);
  config.width = settings.size("n_embd", 768);
  config.heads = settings.size("n_head", 12);
  check(config.width % config.heads == 0, name,
        ": n_head: expected a divisor of n_embd = ", config.width, ", got ", config.heads);
  config.head_dim = config.width / config.heads;
  config.context = settings.size("n_positions", 1024);
  config.vocab_size = settings.size("vocab_size", 50257);
  config.attention = "standard";
  config.feed_forward =
      feed_forward_of(settings.get<std::string>("activation_function", "gelu_new"), name);
  config.feed_forward_width = settings.size("n_inner", 4 * config.width);
  config.norm_eps = settings.get("layer_norm_epsilon", 1e-5);
  config.position = "learned";
  config.embedding_norm = false;
  config.bias = true;
  config.tied_head = settings.get("tie_word_embeddings", true);
  try {
    config.validate();
  } catch (const UsageError& error) {
    throw Error(cat(name, ": ", error.what()));
  }
  return config;
}

model::Gpt gpt2(const checkpoint::HuggingFaceFolder& folder) {
  const std::string name = (folder.folder() / "config.json").string();
  const Settings settings(folder.config(), name);
  model::Gpt result(gpt2_config(folder.config(), name));
  const model::ModelConfig& config = result.config();
  Weights weights(folder);
  const at::NoGradGuard guard;
  for (const model::NamedTensor& parameter : result.parameters())
    parameter.tensor.copy_(weights.take(parameter.name, parameter.tensor.sizes()));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const double factor = query_factor(settings, layer, config.head_dim);
    const std::string queries = cat(kPrefix, "h.", layer, ".attn.c_attn.");
    for (const model::NamedTensor& parameter : result.parameters())
      if (factor != 1 && parameter.name.starts_with(queries))
        parameter.tensor.narrow(0, 0, config.width).mul_(factor);
  }
  if (config.tied_head && weights.has(kHead)) {
    const at::Tensor& embedding = result.parameters().front().tensor;
    check(at::equal(weights.take(std::string(kHead), embedding.sizes()), embedding),
          folder.folder().string(), ": '", kHead,
          "' is not the embedding, though tie_word_embeddings says so; set it to false in "
          "config.json to use it");
  }
  weights.check_all_taken();
  return result;
}

}  // namespace xsa::load
