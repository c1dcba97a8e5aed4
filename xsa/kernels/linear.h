// A linear layer for few rows, as the steps of generation have them: every weight is read once from
// memory, whatever the number of rows, and a row's result does not depend on the other rows.
//
//   y_no = sum_i x_ni w_oi + b_o
//
// Inputs are trusted here: the model (xsa/model) has checked them.
#pragma once

#include <cstdint>
#include <vector>

#include "xsa/kernels/attention.h"

namespace xsa::kernels {

/// One call; filled by name. All arrays contiguous.
struct LinearParams {
  std::int64_t rows = 0, inputs = 0, outputs = 0;
  Type type = Type::kFloat32;          // of the weight; not kFloat64
  const float* x = nullptr;            // [N, I]
  const void* weight = nullptr;        // [O, I]
  const float* bias = nullptr;         // [O] or null
  float* y = nullptr;                  // [N, O]
  const Parallel* parallel = nullptr;  // null: the calling thread alone
};

/// fp32 arithmetic. Bits of a row depend on that row and the weights alone: not on its neighbours,
/// not on the number of workers.
///
/// FLOPs: 2 N I O. Bytes: I O of the weight's type; where N is large the weight is read from the
/// second cache once for every four rows, and a blocked matrix multiplication is faster.
void linear(const LinearParams& params);

// The definition in code: scalar, double. [N, O]
std::vector<double> reference_linear(const LinearParams& params);

}  // namespace xsa::kernels
