#include "xsa/model/parameters.h"

#include <cmath>

#include "xsa/model/gpt.h"

namespace xsa::model {

std::string block_prefix(std::int64_t layer) { return cat("transformer.h.", layer, "."); }

std::vector<ParameterSpec> parameter_specs(const ModelConfig& config) {
  std::vector<ParameterSpec> specs;
  const auto norm = [&](const std::string& name) {
    specs.push_back({name + ".weight", {config.width}, 1, 0});
    if (config.bias) specs.push_back({name + ".bias", {config.width}, 0, 0});
  };
  const auto gated_norm = [&](const std::string& name) {
    norm(name);
    if (config.gated_norm == 0) return;
    specs.push_back(
        {name + ".gate_down.weight", {config.gated_norm, config.width}, 0, config.init_std});
    specs.push_back(
        {name + ".gate_up.weight", {config.width, config.gated_norm}, 0, config.init_std});
  };
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in, double std) {
    specs.push_back({name + ".weight", {out, in}, 0, std});
    if (config.bias) specs.push_back({name + ".bias", {out}, 0, 0});
  };
  // The residual stream sums two outputs a layer: their scale keeps its variance (GPT-2).
  const double residual_std = config.init_std / std::sqrt(2.0 * static_cast<double>(config.layers));
  const std::int64_t heads_width = config.heads * config.head_dim;
  const std::int64_t qkv_width = heads_width + 2 * config.key_heads() * config.head_dim;

  // What attention has beyond the paper's, each where its setting is on.
  const auto variants = [&](const std::string& attention, bool is_exclusive) {
    if (config.sink_tokens > 0)
      for (const char* sinks : {"sink_key", "sink_value"})
        specs.push_back({attention + sinks,
                         {config.key_heads(), config.sink_tokens, config.head_dim},
                         0,
                         config.init_std});
    if (config.sink_logits) specs.push_back({attention + "sink_logits", {config.heads}, 0, 0});
    if (is_exclusive && config.learned_strength == "head")
      specs.push_back({attention + "strength", {config.heads}, config.strength, 0});
    if (is_exclusive && config.learned_strength == "token") {
      specs.push_back({attention + "c_strength.weight", {config.heads, config.width}, 0, 0});
      specs.push_back({attention + "c_strength.bias", {config.heads}, config.strength, 0});
    }
    if (config.output_gate)
      specs.push_back(
          {attention + "c_gate.weight", {heads_width, config.width}, 0, config.init_std});
  };

  specs.push_back({kEmbedding, {config.vocab_size, config.width}, 0, config.init_std});
  if (config.position == "learned")
    specs.push_back({kPositions, {config.context, config.width}, 0, config.init_std});
  if (config.embedding_norm) norm("transformer.ln_e");
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string block = block_prefix(layer);
    gated_norm(block + "ln_1");
    linear(block + "attn.c_attn", qkv_width, config.width, config.init_std);
    variants(block + "attn.", config.is_exclusive(layer));
    linear(block + "attn.c_proj", config.width, heads_width, residual_std);
    gated_norm(block + "ln_2");
    linear(block + "mlp.c_fc", config.inner_width(), config.width, config.init_std);
    linear(block + "mlp.c_proj", config.width, config.inner_width(), residual_std);
  }
  gated_norm("transformer.ln_f");
  if (!config.tied_head)
    specs.push_back({kHead, {config.vocab_size, config.width}, 0, config.init_std});
  return specs;
}

ModelCount count(const ModelConfig& config) {
  config.validate();
  ModelCount result{};
  std::int64_t multiplied = 0;  // weights that every token meets in a matrix multiplication
  for (const ParameterSpec& spec : parameter_specs(config)) {
    std::int64_t size = 1;
    for (const std::int64_t n : spec.sizes) size *= n;
    const bool is_token = spec.name == kEmbedding, is_position = spec.name == kPositions;
    result.parameters += size;
    if (!is_token && !is_position && spec.name != kHead) result.non_embedding_parameters += size;
    if (spec.is_matrix() && !is_position && (!is_token || config.tied_head)) multiplied += size;
  }
  // q k^T and p v: 2 D each for a query and a key. A query sees (T + 1) / 2 keys on average, and
  // with a window of w all but the (T - w) (T - w + 1) / 2 pairs beyond it.
  double pairs = static_cast<double>(config.context + 1) / 2;
  if (config.window > 0 && config.window < config.context) {
    const auto beyond = static_cast<double>(config.context - config.window);
    pairs -= beyond * (beyond + 1) / 2 / static_cast<double>(config.context);
  }
  pairs += static_cast<double>(config.sink_tokens);  // seen by all
  const double attention =
      static_cast<double>(config.layers * config.heads * config.head_dim) * 4 * pairs;
  result.forward_flops_per_token = 2 * static_cast<double>(multiplied) + attention;
  return result;
}

}  // namespace xsa::model
