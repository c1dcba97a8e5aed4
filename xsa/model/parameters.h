// What parameters a configuration has: names, shapes, initial values. The model, its checkpoints
// and its counts all follow this list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xsa/model/config.h"

namespace xsa::model {

struct ParameterSpec {
  std::string name;
  std::vector<std::int64_t> sizes;  // matrices [out, in], vectors [width], sinks [K, n, D]
  double mean = 0, std = 0;         // initial values are normal; constant where std = 0

  bool is_matrix() const { return sizes.size() == 2; }
};

/// "transformer.h.LAYER."
std::string block_prefix(std::int64_t layer);
inline constexpr const char* kEmbedding = "transformer.wte.weight";
inline constexpr const char* kPositions = "transformer.wpe.weight";
inline constexpr const char* kHead = "lm_head.weight";

/// In the order of the forward pass.
std::vector<ParameterSpec> parameter_specs(const ModelConfig& config);

}  // namespace xsa::model
