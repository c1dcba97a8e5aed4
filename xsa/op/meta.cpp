// Shapes without data, symbolic ones too: what torch.compile and torch.export trace with.
#include <ATen/ATen.h>

#include "xsa/op/checks.h"
#include "xsa/op/signature.h"
#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

at::Tensor gradient_of(const OptionalTensor& option) {
  if (!has(option)) return {};
  return at::empty_symint(option->sym_sizes(), option->options());
}

}  // namespace

Outputs meta_forward(const Inputs& in, const AttentionOptions& options) {
  check_call(in, options);
  const auto rows = in.q.sym_sizes().slice(0, 3);
  const auto row_options = in.q.options().dtype(accumulate_type(in.q));
  return {new_laid_out_like(in.q, in.v.sym_size(3)), at::empty_symint(rows, row_options),
          at::empty_symint(rows, row_options)};
}

Gradients meta_backward(const BackwardInputs& in, const AttentionOptions& options) {
  check_call(in, options);
  return {new_laid_out_like(in.q, in.q.sym_size(3)), new_laid_out_like(in.k, in.k.sym_size(3)),
          new_laid_out_like(in.v, in.v.sym_size(3)), gradient_of(options.learned_strength),
          gradient_of(options.sink_logits)};
}

}  // namespace xsa::op
