// The paper's model: NanoGPT with RoPE, a norm after the token embedding, and heads apart from the
// width; attention standard or exclusive per layer (op/attention.h). Plain tensors and functions:
// no module system.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "xsa/model/config.h"

namespace xsa::model {

struct NamedTensor {
  std::string name;  // NanoGPT's: "transformer.h.0.attn.q_proj.weight"
  at::Tensor tensor;
  bool decay;  // matrices only: one-dimensional parameters are not decayed
};

/// What one layer's attention saw and gave; shapes as in op/attention.h.
struct AttentionTrace {
  std::int64_t layer;
  double strength;
  at::Tensor q, k, v, z, lse, c;
};
using AttentionObserver = std::function<void(const AttentionTrace&)>;

class Gpt {
 public:
  /// Draws the initial weights from `seed`: the same for standard and exclusive attention.
  Gpt(const ModelConfig& config, std::uint64_t seed);

  const ModelConfig& config() const { return config_; }
  /// In a fixed order; the tensors are leaves that require gradients, and may be written in place.
  const std::vector<NamedTensor>& parameters() const { return parameters_; }

  /// tokens [B, T] int64 -> final hidden states [B, T, C], after the last norm. `observe` is called
  /// once a layer.
  at::Tensor hidden(const at::Tensor& tokens, const AttentionObserver& observe = {}) const;
  /// tokens [B, T] -> logits [B, T, V], all at once (small inputs: tests, generation).
  at::Tensor logits(const at::Tensor& tokens) const;
  /// Cross-entropy in nats, summed over all targets [B, T] (int64; -1 is ignored): scalar fp32,
  /// differentiable. Never holds more than `chunk` rows of logits, forward or backward
  /// (model/linear_cross_entropy.h).
  at::Tensor loss_sum(const at::Tensor& tokens, const at::Tensor& targets,
                      std::int64_t chunk = 1024) const;

 private:
  struct Block;
  const at::Tensor& parameter(const std::string& name) const;

  ModelConfig config_;
  std::vector<NamedTensor> parameters_;
  at::Tensor rope_cos_, rope_sin_;  // [context, head_dim / 2], fp32
};

/// Sizes that follow from a configuration alone.
struct ModelCount {
  std::int64_t parameters, non_embedding_parameters;
  /// Of one token at the full context, forward; backward is twice that. Matrix multiplications
  /// only, causal attention counted as the half that is computed.
  double forward_flops_per_token;
};
ModelCount count(const ModelConfig& config);

}  // namespace xsa::model
