// Rotary positions as an operator: torch.ops.xsa.rotary_embedding from Python.
//
//   (x_i, x_{i + D/2}) turns by the angle of its token's row of the tables, i = 0 .. D/2 - 1
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

namespace xsa::op {

struct RotaryOptions {
  c10::SymInt offset = 0;  // the tables' row of the first token: tokens in a cache before it
  bool inverse = false;    // turns back
};

/// x [B, H, T, D], D even, any strides; cos, sin [positions, D / 2] of the angles, float32, with
/// offset + T <= positions. Returns a new tensor like x, laid out like it, computed in float32
/// (float64 for float64). Differentiable in x, as often as wanted, and not in the tables. Throws
/// c10::ValueError naming what, expected, got and remedy.
at::Tensor rotary_embedding(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                            const RotaryOptions& options = {});

/// The same into `out`, of x's sizes and type, which may be x itself. Not differentiable: for
/// autograd nodes that know their memory.
void rotary_embedding_into(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                           const RotaryOptions& options, const at::Tensor& out);

}  // namespace xsa::op
