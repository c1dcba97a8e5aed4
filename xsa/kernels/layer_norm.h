// The residual sum and the LayerNorm after it (Ba et al., arXiv 1607.06450) in one pass, as a
// pre-norm transformer takes them between two branches:
//
//   s = x + r      y = (s - mean(s)) rstd w + b      rstd = 1 / sqrt(var(s) + eps)
//   dx = dr = rstd (g - mean(g) - n mean(g n)) + ds      with g = w dy, n = (s - mean(s)) rstd
//   dw = sum over rows of n dy                           db = sum over rows of dy
//
// Inputs are trusted here: the operator (xsa/op) checks them at the door.
#pragma once

#include <cstdint>
#include <vector>

#include "xsa/kernels/attention.h"

namespace xsa::kernels {

/// One call, forward or backward; filled by name. R rows of C elements, all arrays contiguous.
struct AddLayerNormParams {
  std::int64_t rows = 0, width = 0;
  Type type = Type::kFloat32;  // of x, residual, sum, y and their gradients; not kFloat64
  double eps = 1e-5;
  const float* weight = nullptr;  // [C]

  // Forward reads x, residual and bias and writes the rest; backward reads sum, mean and rstd.
  const void *x = nullptr, *residual = nullptr;  // [R, C]
  const float* bias = nullptr;                   // [C] or null
  void *sum = nullptr, *y = nullptr;             // [R, C]
  float *mean = nullptr, *rstd = nullptr;        // [R]

  // Backward only.
  const void *dy = nullptr, *dsum = nullptr;   // [R, C]; dsum may be null
  void* dx = nullptr;                          // [R, C]: of x, and of residual
  float *dweight = nullptr, *dbias = nullptr;  // [C]; written whole

  const Parallel* parallel = nullptr;  // null: the calling thread alone
};

/// fp32 arithmetic; mean and variance of the sum as it is stored. Bits depend on the input alone:
/// rows are cut into pieces by the sizes, whatever the number of workers.
///
/// FLOPs: 9 an element forward, 15 backward. Bytes, with e those of an element: 4 e forward (x,
/// residual, sum, y), 4 e backward (dy, dsum, sum, dx).
void add_layer_norm_forward(const AddLayerNormParams& params);
void add_layer_norm_backward(const AddLayerNormParams& params);

// The definition in code: scalar, double, any Type as input.
struct ReferenceAddLayerNorm {
  std::vector<double> sum, y;      // [R, C]
  std::vector<double> mean, rstd;  // [R]
};
struct ReferenceAddLayerNormBackward {
  std::vector<double> dx;              // [R, C]
  std::vector<double> dweight, dbias;  // [C]
};
ReferenceAddLayerNorm reference_add_layer_norm(const AddLayerNormParams& params);
/// Reads x, residual, dy and dsum of params; computes its own forward in double.
ReferenceAddLayerNormBackward reference_add_layer_norm_backward(const AddLayerNormParams& params);

}  // namespace xsa::kernels
