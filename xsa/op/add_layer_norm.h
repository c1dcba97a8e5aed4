// The residual sum and the LayerNorm after it as one operator: torch.ops.xsa.add_layer_norm from
// Python.
//
//   sum = x + residual      y = (sum - mean) rstd weight + bias      rstd = 1 / sqrt(var + eps)
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <utility>

namespace xsa::op {

/// x, residual [..., C] of one type, weight and bias [C] of any floating type. Returns (y, sum),
/// both like x, differentiable once; sums in float32 (float64 for float64). Throws c10::ValueError
/// naming what, expected, got and remedy.
std::pair<at::Tensor, at::Tensor> add_layer_norm(const at::Tensor& x, const at::Tensor& residual,
                                                 const at::Tensor& weight,
                                                 const std::optional<at::Tensor>& bias,
                                                 double eps = 1e-5);

}  // namespace xsa::op
