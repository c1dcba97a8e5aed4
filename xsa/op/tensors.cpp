#include "xsa/op/tensors.h"

#include <ATen/ATen.h>

#include <cmath>
#include <sstream>

namespace xsa::op {

std::string describe(const at::Tensor& tensor) {
  std::ostringstream out;
  out << tensor.sym_sizes() << ' ' << tensor.scalar_type() << " on " << tensor.device();
  return out.str();
}

double scale_of(const Inputs& in, const AttentionOptions& options) {
  return options.scale.value_or(1 / std::sqrt(static_cast<double>(in.q.size(3))));
}

std::int64_t own_offset_of(const Inputs& in, const AttentionOptions& options) {
  return options.own_offset.value_or(in.k.size(2) - in.q.size(2));
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

at::Tensor sum_to_option(const at::Tensor& per_row, const at::Tensor& option) {
  at::Tensor sum = per_row;
  if (option.dim() == 0) sum = per_row.sum();
  if (option.dim() == 1) sum = per_row.sum(at::IntArrayRef{0, 2});
  return sum.to(option.scalar_type());
}

}  // namespace xsa::op
