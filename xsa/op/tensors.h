// Small questions that all paths of the operator ask.
#pragma once

#include <array>
#include <ostream>

#include "xsa/op/signature.h"

namespace xsa::op {

inline bool has(const OptionalTensor& tensor) { return tensor.has_value() && tensor->defined(); }

/// "[2, 4, 8, 16] Float on cpu": for messages. Costs nothing until it is written.
struct Described {
  const at::Tensor& tensor;
};
std::ostream& operator<<(std::ostream& out, const Described& described);
inline Described describe(const at::Tensor& tensor) { return {tensor}; }

/// An option in a call with data, where no number is open.
inline std::int64_t known(const c10::SymInt& number) {
  return number.guard_int(__FILE__, __LINE__);
}

/// What the defaults None stand for. `queries` [B, H, T, ...], `keys` [B, K, S, ...].
double scale_of(const Inputs& inputs, const AttentionOptions& options);
std::int64_t own_offset_of(const at::Tensor& queries, const at::Tensor& keys,
                           const OptionalSymInt& own_offset);
std::int64_t own_offset_of(const Inputs& inputs, const AttentionOptions& options);

/// Type of every sum, and of lse and c: double for double, else float.
at::ScalarType accumulate_type(const at::Tensor& q);

/// A new tensor for z or a gradient, with the sizes of `like` but `last` in the last dimension. In
/// memory it is [B, T, H, last] where the heads of `like` lie within its tokens (stride(1) <
/// stride(2)), else [B, H, T, last]: a model that transposes heads out of its projections can
/// transpose them back without a copy.
at::Tensor new_laid_out_like(const at::Tensor& like, const c10::SymInt& last);

/// The strides over b, h and t of a contiguous learned strength, scalar, [H] or [B, H, T].
std::array<std::int64_t, 3> learned_strength_stride(const at::Tensor& strength, std::int64_t heads,
                                                    std::int64_t queries);

/// For the paths in ATen: a power of two near the largest element of each own value w [..., Dv], at
/// least about eps, [..., 1]. Squares of w divided by it neither overflow nor vanish.
at::Tensor own_scale(const at::Tensor& w, double eps);

/// The gradient of an option that many rows share: per_row [B, H, T] summed to the option's shape
/// (scalar, [H] or [B, H, T]) and type.
at::Tensor sum_to_option(const at::Tensor& per_row, const at::Tensor& option);

}  // namespace xsa::op
