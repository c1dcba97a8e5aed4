// What a model may have beyond the paper's, in every combination: what tests of the model, of
// training and of decoding go through. ModelConfig is model::ModelConfig, which tests/support does
// not know.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace xsa {

/// `base` with each combination, the plain one first and all at once last. Windows, grouped heads
/// and standard layers come and go among them.
template <class ModelConfig>
std::vector<ModelConfig> every_variant(const ModelConfig& base) {
  std::vector<ModelConfig> all;
  for (const unsigned learned : {0U, 1U, 2U}) {
    for (unsigned bits = 0; bits < 16; ++bits) {
      ModelConfig config = base;
      config.learned_strength = learned == 0 ? "none" : learned == 1 ? "head" : "token";
      config.sink_tokens = (bits & 1U) != 0 ? 3 : 0;
      config.sink_logits = (bits & 2U) != 0;
      config.output_gate = (bits & 4U) != 0;
      config.gated_norm = (bits & 8U) != 0 ? 5 : 0;
      const auto others = static_cast<unsigned>(std::popcount(bits)) + learned;  // 0 to 6
      if (others % 2 == 0 && others > 0) config.window = 6;
      if (others % 3 == 0 && others > 0) config.kv_heads = base.heads / 2;
      if (others % 4 == 1) config.exclusive_layers = "last 1";
      all.push_back(config);
    }
  }
  return all;
}

template <class ModelConfig>
ModelConfig all_variants(const ModelConfig& base) {
  return every_variant(base).back();
}

}  // namespace xsa
