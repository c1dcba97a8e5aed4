#include "xsa/op/tensors.h"

#include <ATen/ATen.h>

#include <cmath>

namespace xsa::op {

std::ostream& operator<<(std::ostream& out, const Described& described) {
  const at::Tensor& tensor = described.tensor;
  return out << tensor.sym_sizes() << ' ' << tensor.scalar_type() << " on " << tensor.device();
}

double scale_of(const Inputs& in, const AttentionOptions& options) {
  return options.scale.value_or(1 / std::sqrt(static_cast<double>(in.q.size(3))));
}

std::int64_t own_offset_of(const at::Tensor& queries, const at::Tensor& keys,
                           const OptionalSymInt& own_offset) {
  return own_offset ? known(*own_offset) : keys.size(2) - queries.size(2);
}

std::int64_t own_offset_of(const Inputs& in, const AttentionOptions& options) {
  return own_offset_of(in.q, in.k, options.own_offset);
}

at::ScalarType accumulate_type(const at::Tensor& q) {
  return q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor new_laid_out_like(const at::Tensor& like, const c10::SymInt& last) {
  const c10::SymInt batch = like.sym_size(0), heads = like.sym_size(1), tokens = like.sym_size(2);
  if (TORCH_GUARD_OR_FALSE(like.sym_stride(1).sym_lt(like.sym_stride(2))))
    return at::empty_symint({batch, tokens, heads, last}, like.options()).transpose(1, 2);
  return at::empty_symint({batch, heads, tokens, last}, like.options());
}

std::array<std::int64_t, 3> learned_strength_stride(const at::Tensor& strength, std::int64_t heads,
                                                    std::int64_t queries) {
  if (strength.dim() == 1) return {0, 1, 0};
  if (strength.dim() == 3) return {heads * queries, queries, 1};
  return {0, 0, 0};
}

at::Tensor own_scale(const at::Tensor& w, double eps) {
  const at::Tensor largest = w.abs().amax(-1, true);
  const at::Tensor exponent = std::get<1>(at::frexp(largest)) - 1;
  const at::Tensor finite = at::where(largest.isfinite(), exponent, at::zeros_like(exponent));
  return at::ldexp(at::ones_like(largest), finite.clamp_min(std::ilogb(eps) + 1));
}

at::Tensor sum_to_option(const at::Tensor& per_row, const at::Tensor& option) {
  if (option.dim() == 3) return per_row.to(option.scalar_type());
  at::Tensor sum;
  if (per_row.is_cpu()) {
    // ATen's sums over many numbers have other bits with other numbers of threads.
    const at::Tensor rows = per_row.to(at::kDouble).contiguous();
    const std::int64_t heads = rows.size(1), queries = rows.size(2);
    sum = at::zeros({heads}, rows.options());
    double* sums = sum.mutable_data_ptr<double>();
    const double* row = rows.const_data_ptr<double>();
    for (std::int64_t head = 0; head < rows.size(0) * heads; ++head)
      for (std::int64_t t = 0; t < queries; ++t) sums[head % heads] += *row++;
  } else {
    sum = per_row.sum(at::IntArrayRef{0, 2});
  }
  if (option.dim() == 0) sum = sum.sum();
  return sum.to(option.scalar_type());
}

}  // namespace xsa::op
