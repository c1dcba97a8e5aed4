// The paper's model: NanoGPT with RoPE, a norm after the token embedding, and heads apart from the
// width; attention standard or exclusive per layer (op/attention.h). Plain tensors and functions:
// no module system.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xsa/model/config.h"
#include "xsa/model/rope.h"

namespace xsa::model {

struct NamedTensor {
  std::string name;  // NanoGPT's: "transformer.h.0.attn.c_attn.weight" (docs/model.md lists them)
  at::Tensor tensor;
  bool decay;  // matrices only: vectors and sinks are not decayed
};

/// What one layer's attention saw and gave; shapes as in op/attention.h.
struct AttentionTrace {
  std::int64_t layer;
  double strength;  // where it is learned, the initial one
  at::Tensor q, k, v, z, lse, c;
  std::int64_t num_sink_keys = 0;    // in front of k and v, S = T + n: own_offset is S - T
  at::Tensor sink_logits = {};       // [H]; undefined: none
  at::Tensor learned_strength = {};  // [H] or [B, H, T]; undefined: strength counts
};
using AttentionObserver = std::function<void(const AttentionTrace&)>;

/// Memory for weights, which every token of generation reads from end to end: in huge pages.
at::Tensor empty_parameter(at::IntArrayRef sizes, at::ScalarType type);
/// GELU's formula as at::gelu names it: "none" (erf) or "tanh".
std::string_view gelu_formula(const ModelConfig& config);

/// A copy shares its weights.
class Gpt {
 public:
  /// Draws the initial weights from `seed`: the same for standard and exclusive attention. Throws
  /// UsageError for an impossible configuration.
  Gpt(const ModelConfig& config, std::uint64_t seed);
  /// With weights of any value: whoever loads a model writes them all.
  explicit Gpt(const ModelConfig& config) : Gpt(config, std::optional<std::uint64_t>()) {}

  const ModelConfig& config() const { return config_; }
  /// In a fixed order; the tensors are leaves that require gradients, and may be written in place.
  const std::vector<NamedTensor>& parameters() const { return parameters_; }

  /// tokens [B, T] int64, T <= context -> final hidden states [B, T, C], after the last norm.
  /// `observe` is called once a layer. cu_seqlens [documents + 1] int32, where given, cuts the B T
  /// tokens, row after row, into documents that do not see one another; every row border is one of
  /// its entries, and the traces' tensors are of one row of B T tokens. Throws UsageError for
  /// tokens or documents that do not fit.
  at::Tensor hidden(const at::Tensor& tokens, const AttentionObserver& observe = {},
                    const at::Tensor& cu_seqlens = {}) const;
  /// tokens [B, T] -> logits [B, T, V], all at once (small inputs: tests, generation).
  at::Tensor logits(const at::Tensor& tokens) const;
  /// Cross-entropy in nats, summed over all targets [B, T] (int64; -1 is ignored): scalar fp32,
  /// differentiable. Never holds more than `chunk` rows of logits, forward or backward
  /// (model/linear_cross_entropy.h). Documents as in hidden.
  at::Tensor loss_sum(const at::Tensor& tokens, const at::Tensor& targets,
                      std::int64_t chunk = 1024, const at::Tensor& cu_seqlens = {}) const;

 private:
  Gpt(const ModelConfig& config, const std::optional<std::uint64_t>& seed);

  struct Affine {
    at::Tensor weight, bias;  // bias: undefined where there is none
    at::Tensor operator()(const at::Tensor& x) const;
  };
  struct Norm {
    at::Tensor weight, bias, gate_down, gate_up;  // gates: undefined where there are none
    double eps;
    at::Tensor operator()(const at::Tensor& x) const;
    /// (the norm of branch + x, branch + x), in one pass.
    std::pair<at::Tensor, at::Tensor> after_adding(const at::Tensor& branch,
                                                   const at::Tensor& x) const;

   private:
    at::Tensor gated(const at::Tensor& y) const;
  };
  struct Block {
    Norm norm_1, norm_2;
    Affine qkv, attention_out, up, down;
    double strength;
    // Undefined where there are none.
    at::Tensor sink_key, sink_value, sink_logits, head_strength;
    Affine token_strength, gate;

    /// normed [B, T, C] -> [H] or [B, H, T]; undefined where the strength is not learned.
    at::Tensor learned_strength(const at::Tensor& normed) const;
  };

  at::Tensor find(const std::string& name) const;
  Affine affine(const std::string& name) const;
  Norm norm(const std::string& name) const;
  void check_tokens(const at::Tensor& tokens) const;
  at::Tensor attention(const at::Tensor& normed, std::int64_t layer, const RopeTables& rope,
                       const at::Tensor& cu_seqlens, const AttentionObserver& observe) const;
  at::Tensor feed_forward(const at::Tensor& normed, const Block& block) const;

  ModelConfig config_;
  std::vector<NamedTensor> parameters_;
  // Handles of the same tensors, by role.
  at::Tensor embedding_, positions_, head_;  // positions_: undefined unless they are learned
  Norm embedding_norm_, final_norm_;
  std::vector<Block> blocks_;
  RopeTables rope_;
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
