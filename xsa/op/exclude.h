// The exclusion alone as an operator, for callers who keep their own attention:
// torch.ops.xsa.exclude from Python.
//
//   c_i = (y_i . w_i) / max(w_i . w_i, eps^2)          z_i = y_i - strength c_i w_i
//
// y is any attention's output, w_i the value of query i's own key, own_offset + i.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <optional>

namespace xsa::op {

/// The options of xsa::exclude; docs/operator.md says each in full.
struct ExcludeOptions {
  double strength = 1.0;                       // 1: the paper, 0: z is y
  std::optional<at::Tensor> learned_strength;  // scalar, [H] or [B, H, T]; replaces strength
  std::optional<c10::SymInt> own_offset;       // S - T by default (bottom-right)
  double eps = 1e-12;
};

struct ExcludeResult {
  at::Tensor z;  // [B, H, T, Dv], like y
  at::Tensor c;  // [B, H, T], fp32; not differentiable
};

/// y [B, H, T, Dv], v [B, K, S, Dv], H a multiple of K; any strides, any Dv. Throws c10::Error
/// naming what, expected, got and remedy.
ExcludeResult exclude(const at::Tensor& y, const at::Tensor& v, const ExcludeOptions& options = {});

}  // namespace xsa::op
