// Linear layers without gradients, for the decoder: fp32 activations, weights in fp32 or half of
// that.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace xsa::model {

/// Up to this many rows a row's bits do not depend on the other rows; beyond, with fp32 weights, a
/// blocked matrix multiplication runs, MKL's or oneDNN's, which is faster then.
inline constexpr std::int64_t kFewRows = 32;

struct Linear {
  at::Tensor weight;  // [O, I], fp32 or bf16, contiguous
  at::Tensor bias;    // [O] fp32, or undefined

  /// x [N, I] fp32 -> [N, O] fp32. Sums are fp32, whatever the weight.
  at::Tensor operator()(const at::Tensor& x) const;
};

}  // namespace xsa::model
