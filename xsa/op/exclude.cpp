#include "xsa/op/exclude.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "xsa/kernels/exclude.h"
#include "xsa/op/autocast.h"
#include "xsa/op/backend.h"
#include "xsa/op/exclude_signature.h"
#include "xsa/op/kernel_call.h"
#include "xsa/op/registration.h"
#include "xsa/op/tensor_number.h"
#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

using at::Tensor;

bool takes_kernel(const Tensor& v) {
  const std::string choice = backend();
  const bool possible = v.is_cpu() && v.scalar_type() != at::kDouble;
  TORCH_CHECK_NOT_IMPLEMENTED(choice != "cpu_fused" || possible,
                              "xsa::exclude: set_backend('cpu_fused') is in force, but there is no "
                              "fused kernel for ",
                              v.scalar_type(), " on ", v.device(), "; call set_backend('auto')");
  return possible && choice != "composite";
}

/// Inputs, sizes and options as the kernel takes them; outputs are the caller's to fill. Valid
/// while this object and the inputs live. `rows` [B, H, T, Dv].
struct ExcludeKernelCall {
  ExcludeKernelCall(const Tensor& rows, const Tensor& v, const ExcludeOptions& o)
      : parallel(aten_threads()) {
    params.batch = rows.size(0), params.query_heads = rows.size(1);
    params.queries = rows.size(2), params.value_dim = rows.size(3);
    params.key_heads = v.size(1), params.keys = v.size(2);
    params.type = kernel_type(v.scalar_type());
    params.v = kernel_view(v);
    params.strength = o.strength, params.eps = o.eps;
    params.own_offset = own_offset_of(rows, v, o.own_offset);
    params.parallel = &parallel;
    if (!has(o.learned_strength)) return;
    learned = o.learned_strength->to(at::kFloat).contiguous();
    params.learned_strength = learned.const_data_ptr<float>();
    params.learned_strength_stride =
        learned_strength_stride(learned, params.query_heads, params.queries);
  }
  ExcludeKernelCall(const ExcludeKernelCall&) = delete;  // params points into this object
  ExcludeKernelCall& operator=(const ExcludeKernelCall&) = delete;

  kernels::ExcludeParams params;
  Parallel parallel;
  Tensor learned;
};

ExcludeOutputs exclude_cpu(const ExcludeInputs& in, const ExcludeOptions& options) {
  check_exclude(in, options);
  if (!takes_kernel(in.v)) return exclude_composite(in, options);
  ExcludeKernelCall call(in.y, in.v, options);
  const Tensor z = new_laid_out_like(in.y, in.y.size(3));
  const Tensor c = at::empty(in.y.sizes().slice(0, 3), in.y.options().dtype(at::kFloat));
  call.params.y = kernel_view(in.y), call.params.z = kernel_mutable_view(z);
  call.params.c = c.mutable_data_ptr<float>();
  kernels::exclude_forward(call.params);
  return {z, c};
}

ExcludeGradients exclude_backward_cpu(const ExcludeBackwardInputs& in,
                                      const ExcludeOptions& options) {
  check_exclude(in, options);
  if (!takes_kernel(in.v)) return exclude_backward_composite(in, options);
  ExcludeKernelCall call(in.z, in.v, options);
  const Tensor dy = new_laid_out_like(in.z, in.z.size(3));
  const Tensor dv = new_laid_out_like(in.v, in.v.size(3));
  const Tensor c = in.c.contiguous();
  call.params.dz = kernel_view(in.dz);
  // The kernel only reads these two; their fields are mutable for the forward's sake.
  call.params.z = kernel_mutable_view(in.z);
  call.params.c = const_cast<float*>(c.const_data_ptr<float>());
  call.params.dy = kernel_mutable_view(dy), call.params.dv = kernel_mutable_view(dv);
  Tensor dstrength;
  if (has(options.learned_strength)) {
    dstrength = at::empty_like(c);
    call.params.dlearned_strength = dstrength.mutable_data_ptr<float>();
  }
  kernels::exclude_backward(call.params);
  if (dstrength.defined()) dstrength = sum_to_option(dstrength, *options.learned_strength);
  return {dy, dv, dstrength};
}

ExcludeOutputs exclude_meta(const ExcludeInputs& in, const ExcludeOptions& options) {
  check_exclude(in, options);
  return {
      new_laid_out_like(in.y, in.y.sym_size(3)),
      at::empty_symint(in.y.sym_sizes().slice(0, 3), in.y.options().dtype(accumulate_type(in.y)))};
}

ExcludeGradients exclude_backward_meta(const ExcludeBackwardInputs& in,
                                       const ExcludeOptions& options) {
  check_exclude(in, options);
  Tensor dstrength;
  if (has(options.learned_strength))
    dstrength = at::empty_symint(options.learned_strength->sym_sizes(),
                                 options.learned_strength->options());
  return {new_laid_out_like(in.z, in.z.sym_size(3)), new_laid_out_like(in.v, in.v.sym_size(3)),
          dstrength};
}

/// y and v take the region's type; c and a learned strength keep theirs.
template <at::DeviceType device>
ExcludeOutputs exclude_autocast(const ExcludeInputs& in, const ExcludeOptions& options) {
  const Autocast region(device);
  return call_exclude({region.lower(in.y), region.lower(in.v)}, options);
}

template <class Result, class... Tensors>
auto find_operator(const char* name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<ExcludeSignature<Result, const Tensors&...>>();
}

}  // namespace

ExcludeOutputs call_exclude(const ExcludeInputs& in, const ExcludeOptions& o) {
  static const auto handle = find_operator<ExcludeOutputs, Tensor, Tensor>("xsa::exclude");
  return handle.call(in.y, in.v, o.strength, o.learned_strength, o.own_offset, o.eps);
}

ExcludeGradients call_exclude_backward(const ExcludeBackwardInputs& in, const ExcludeOptions& o) {
  static const auto handle =
      find_operator<ExcludeGradients, Tensor, Tensor, Tensor, Tensor>("xsa::exclude_backward");
  return handle.call(in.dz, in.v, in.z, in.c, o.strength, o.learned_strength, o.own_offset, o.eps);
}

ExcludeResult exclude(const Tensor& y, const Tensor& v, const ExcludeOptions& options) {
  auto [z, c] = call_exclude({y, v}, options);
  return {std::move(z), std::move(c)};
}

void register_exclude(torch::Library& library) {
  using c10::DispatchKey;
  const std::string options = exclude_options_schema();
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
  const auto forward = [&](const std::string& overload, const std::string& given) {
    library.def(
        ("exclude" + overload + "(Tensor y, Tensor v, *, " + given + ") -> (Tensor z, Tensor c)")
            .c_str(),
        tags);
  };
  forward("", options);
  forward(".tensor_strength", exclude_options_schema({.strength = "Tensor strength"}));
  library.def(("exclude_backward(Tensor dz, Tensor v, Tensor z, Tensor c, *, " + options +
               ") -> (Tensor dy, Tensor dv, Tensor dlearned_strength)")
                  .c_str(),
              tags);
  const auto impl = [&](const char* name, DispatchKey key, auto* function) {
    library.impl(name, torch::dispatch(key, function));
  };
  implement_tensor_number(library, "exclude.tensor_strength");
  impl("exclude", DispatchKey::CompositeExplicitAutograd,
       &ExcludeForwardKernel<exclude_composite>::call);
  impl("exclude", DispatchKey::CPU, &ExcludeForwardKernel<exclude_cpu>::call);
  impl("exclude", DispatchKey::Meta, &ExcludeForwardKernel<exclude_meta>::call);
  impl("exclude", DispatchKey::Autograd, &ExcludeForwardKernel<exclude_autograd>::call);
  impl("exclude", DispatchKey::AutocastCPU,
       &ExcludeForwardKernel<exclude_autocast<at::kCPU>>::call);
  impl("exclude", DispatchKey::AutocastCUDA,
       &ExcludeForwardKernel<exclude_autocast<at::kCUDA>>::call);
  impl("exclude_backward", DispatchKey::CompositeExplicitAutograd,
       &ExcludeBackwardKernel<exclude_backward_composite>::call);
  impl("exclude_backward", DispatchKey::CPU, &ExcludeBackwardKernel<exclude_backward_cpu>::call);
  impl("exclude_backward", DispatchKey::Meta, &ExcludeBackwardKernel<exclude_backward_meta>::call);
  impl("exclude_backward", DispatchKey::Autograd,
       &ExcludeBackwardKernel<exclude_backward_autograd>::call);
}

}  // namespace xsa::op
