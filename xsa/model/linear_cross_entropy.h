// The output layer and its cross-entropy in one, a few rows of logits at a time. Gradients are
// formed together with the loss, so that no logits are kept or computed twice:
//
//   s = h W^T      loss = sum_i lse(s_i) - s_i[target_i]      ds = softmax(s) - onehot(target)
//   dh = ds W      dW = ds^T h                                summed over the pieces in their order
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace xsa::model {

/// Cross-entropy in nats, summed over the targets: a scalar, fp32 (double for double inputs).
///   hidden [N, C], weight [V, C], targets [N] int64; a target of -1 is ignored.
/// Memory beyond the inputs: min(chunk, N) x V logits, and what requires a gradient once more,
/// until backward. Softmax in fp32. Differentiable once, and backward runs once: a second one, or a
/// derivative of the gradient, throws Error. Throws UsageError for shapes, types or targets that do
/// not fit.
at::Tensor linear_cross_entropy_sum(const at::Tensor& hidden, const at::Tensor& weight,
                                    const at::Tensor& targets, std::int64_t chunk);

}  // namespace xsa::model
