// Small questions that all paths of the operator ask.
#pragma once

#include <string>

#include "xsa/op/signature.h"

namespace xsa::op {

inline bool has(const OptionalTensor& tensor) { return tensor.has_value() && tensor->defined(); }

/// "[2, 4, 8, 16] float32 on cpu": for messages.
std::string describe(const at::Tensor& tensor);

/// What the defaults None stand for.
double scale_of(const Inputs& inputs, const AttentionOptions& options);
std::int64_t own_offset_of(const Inputs& inputs, const AttentionOptions& options);

/// Type of every sum, and of lse and c: double for double, else float.
at::ScalarType accumulate_type(const at::Tensor& q);

/// A new tensor for z or a gradient, with the sizes of `like` but `last` in the last dimension. In
/// memory it is [B, T, H, last] where the heads of `like` lie within its tokens (stride(1) <
/// stride(2)), else [B, H, T, last]: a model that transposes heads out of its projections can
/// transpose them back without a copy.
at::Tensor new_laid_out_like(const at::Tensor& like, const c10::SymInt& last);

/// The gradient of an option that many rows share: per_row [B, H, T] summed to the option's shape
/// (scalar, [H] or [B, H, T]) and type.
at::Tensor sum_to_option(const at::Tensor& per_row, const at::Tensor& option);

}  // namespace xsa::op
