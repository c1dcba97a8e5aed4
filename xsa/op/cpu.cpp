// CPU tensors: the fused kernel (xsa/kernels) or the composite path.
#include <ATen/ATen.h>

#include "xsa/op/backend.h"
#include "xsa/op/checks.h"
#include "xsa/op/kernel_call.h"
#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

using at::Tensor;

Outputs fused_forward(const Inputs& in, const AttentionOptions& options) {
  KernelCall call(in, options);
  const auto rows = in.q.sizes().slice(0, 3);
  const Tensor z = new_laid_out_like(in.q, in.v.size(3));
  const Tensor lse = at::empty(rows, in.q.options().dtype(at::kFloat));
  const Tensor c = at::empty_like(lse);
  call.params.z = kernel_mutable_view(z);
  call.params.lse = lse.mutable_data_ptr<float>();
  call.params.c = c.mutable_data_ptr<float>();
  kernels::forward(call.params);
  return {z, lse, c};
}

Gradients fused_backward(const BackwardInputs& in, const AttentionOptions& options) {
  KernelCall call(in.forward(), options);
  kernels::AttentionParams& params = call.params;
  const Tensor lse = in.lse.contiguous(), c = in.c.contiguous();
  // The kernel only reads these three; their fields are mutable for the forward's sake.
  params.z = kernel_mutable_view(in.z);
  params.lse = const_cast<float*>(lse.const_data_ptr<float>());
  params.c = const_cast<float*>(c.const_data_ptr<float>());
  params.dz = kernel_view(in.dz);
  const Tensor dlse = has(in.dlse) ? in.dlse->contiguous() : Tensor();
  if (dlse.defined()) params.dlse = dlse.const_data_ptr<float>();

  const Tensor dq = new_laid_out_like(in.q, in.q.size(3));
  const Tensor dk = new_laid_out_like(in.k, in.k.size(3));
  const Tensor dv = new_laid_out_like(in.v, in.v.size(3));
  params.dq = kernel_mutable_view(dq), params.dk = kernel_mutable_view(dk),
  params.dv = kernel_mutable_view(dv);
  Tensor dstrength, dsink;
  if (has(options.learned_strength)) {
    dstrength = at::empty_like(lse);
    params.dlearned_strength = dstrength.mutable_data_ptr<float>();
  }
  if (has(options.sink_logits)) {
    dsink = at::empty({params.batch, params.query_heads}, lse.options());
    params.dsink_logits = dsink.mutable_data_ptr<float>();
  }
  kernels::backward(params);
  if (dstrength.defined()) dstrength = sum_to_option(dstrength, *options.learned_strength);
  if (dsink.defined()) dsink = dsink.sum(0).to(options.sink_logits->scalar_type());
  return {dq, dk, dv, dstrength, dsink};
}

}  // namespace

Outputs cpu_forward(const Inputs& inputs, const AttentionOptions& options) {
  check_call(inputs, options);
  if (!why_not_fused(inputs, options).empty()) return composite_forward(inputs, options);
  check_index_values(inputs, options);
  return fused_forward(inputs, options);
}

Gradients cpu_backward(const BackwardInputs& inputs, const AttentionOptions& options) {
  check_call(inputs, options);
  if (!why_not_fused(inputs.forward(), options).empty()) return composite_backward(inputs, options);
  check_index_values(inputs.forward(), options);
  return fused_backward(inputs, options);
}

}  // namespace xsa::op
