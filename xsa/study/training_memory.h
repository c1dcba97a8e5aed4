// What one device's tensors take while a model is trained, byte by byte, without training it: the
// allocations of one step in their order, as xsa/model, xsa/op and xsa/train make them. fp32, the
// type that training runs in.
#pragma once

#include <cstdint>

#include "xsa/model/config.h"

namespace xsa::study {

/// One device's share of a step.
struct Load {
  std::int64_t rows = 1;    // sequences of one forward and backward
  std::int64_t passes = 1;  // such passes of one step
  std::int64_t loss_chunk = 1024;
};

/// Bytes by what they are for, all held at the moment at which their sum is largest. Gradients of
/// activations count as activations; `logits` are the loss's; `other`: a batch, RoPE's tables.
struct TrainingMemory {
  std::int64_t weights = 0, gradients = 0, optimizer = 0, activations = 0, logits = 0, other = 0;
  std::int64_t most_logits = 0;  // at any moment, mostly another one

  std::int64_t total() const {
    return weights + gradients + optimizer + activations + logits + other;
  }
};

/// `config` is resolved (ModelConfig::validate).
TrainingMemory training_memory(const model::ModelConfig& config, const Load& load);

}  // namespace xsa::study
