// CPU tensors: hands the call to the fused kernel (xsa/kernels) or to the composite path.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "xsa/kernels/attention.h"
#include "xsa/op/backend.h"
#include "xsa/op/checks.h"
#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

using at::Tensor;

enum class Backend { kAuto, kComposite, kCpuFused };
std::atomic<Backend> chosen_backend = Backend::kAuto;

/// ATen's own threads: a second OpenMP runtime or pool would oversubscribe the cores. Indices are
/// handed out one at a time, since causal blocks differ in cost.
Parallel aten_threads() {
  const std::int64_t workers = at::get_num_threads();
  return {workers, [workers](std::int64_t count, const Parallel::Task& task) {
            std::atomic<std::int64_t> next{0};
            at::parallel_for(0, std::min(workers, count), 1,
                             [&](std::int64_t first, std::int64_t last) {
                               for (std::int64_t worker = first; worker < last; ++worker)
                                 for (std::int64_t index; (index = next.fetch_add(1)) < count;)
                                   task(index, worker);
                             });
          }};
}

kernels::Type kernel_type(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16:
      return kernels::Type::kBFloat16;
    case at::kHalf:
      return kernels::Type::kFloat16;
    case at::kDouble:
      return kernels::Type::kFloat64;
    default:
      return kernels::Type::kFloat32;
  }
}

std::array<std::int64_t, 4> strides(const Tensor& tensor) {
  const at::IntArrayRef s = tensor.strides();
  return {s[0], s[1], s[2], s[3]};
}
kernels::View view(const Tensor& tensor) { return {tensor.const_data_ptr(), strides(tensor)}; }
kernels::MutableView mutable_view(const Tensor& tensor) {
  return {tensor.mutable_data_ptr(), strides(tensor)};
}

/// AttentionParams, with the tensors that hold converted options.
struct FusedCall {
  kernels::AttentionParams params;
  Parallel parallel = aten_threads();
  std::vector<Tensor> kept_alive;

  FusedCall(const Inputs& in, const AttentionOptions& o) {
    set_sizes(in);
    params.q = view(in.q), params.k = view(in.k), params.v = view(in.v);
    params.is_causal = o.is_causal;
    params.scale = o.scale.value_or(1 / std::sqrt(static_cast<double>(params.head_dim)));
    params.strength = o.strength;
    params.eps = o.eps;
    params.own_offset = o.own_offset.value_or(params.keys - params.queries);
    params.window = o.window.value_or(0);
    params.num_sink_keys = o.num_sink_keys;
    set_tensor_options(o);
    params.parallel = &parallel;
  }
  FusedCall(const FusedCall&) = delete;
  FusedCall& operator=(const FusedCall&) = delete;

 private:
  void set_sizes(const Inputs& in) {
    params.batch = in.q.size(0), params.query_heads = in.q.size(1), params.queries = in.q.size(2);
    params.key_heads = in.k.size(1), params.keys = in.k.size(2);
    params.head_dim = in.q.size(3), params.value_dim = in.v.size(3);
    params.type = kernel_type(in.q.scalar_type());
  }

  template <class Number>
  const Number* data(const OptionalTensor& option) {
    if (!has(option)) return nullptr;
    kept_alive.push_back(option->to(c10::CppTypeToScalarType<Number>::value).contiguous());
    return kept_alive.back().const_data_ptr<Number>();
  }

  void set_tensor_options(const AttentionOptions& o) {
    params.sink_logits = data<float>(o.sink_logits);
    params.cu_seqlens = data<std::int32_t>(o.cu_seqlens);
    if (has(o.cu_seqlens)) params.documents = o.cu_seqlens->numel() - 1;
    params.key_start = data<std::int64_t>(o.key_start);
    params.key_end = data<std::int64_t>(o.key_end);
    params.learned_strength = data<float>(o.learned_strength);
    if (!has(o.learned_strength)) return;
    if (o.learned_strength->dim() == 1) params.learned_strength_stride = {0, 1, 0};
    if (o.learned_strength->dim() == 3)
      params.learned_strength_stride = {params.query_heads * params.queries, params.queries, 1};
  }
};

Outputs fused_forward(const Inputs& in, const AttentionOptions& options) {
  FusedCall call(in, options);
  const auto rows = in.q.sizes().slice(0, 3);
  const Tensor z = new_laid_out_like(in.q, in.v.size(3));
  const Tensor lse = at::empty(rows, in.q.options().dtype(at::kFloat));
  const Tensor c = at::empty_like(lse);
  call.params.z = mutable_view(z);
  call.params.lse = lse.mutable_data_ptr<float>();
  call.params.c = c.mutable_data_ptr<float>();
  kernels::forward(call.params);
  return {z, lse, c};
}

Gradients fused_backward(const BackwardInputs& in, const AttentionOptions& options) {
  FusedCall call(in.forward(), options);
  kernels::AttentionParams& params = call.params;
  const Tensor lse = in.lse.contiguous(), c = in.c.contiguous();
  // The kernel only reads these three; their fields are mutable for the forward's sake.
  params.z = {const_cast<void*>(in.z.const_data_ptr()), strides(in.z)};
  params.lse = const_cast<float*>(lse.const_data_ptr<float>());
  params.c = const_cast<float*>(c.const_data_ptr<float>());
  params.dz = view(in.dz);
  const Tensor dlse = has(in.dlse) ? in.dlse->contiguous() : Tensor();
  if (dlse.defined()) params.dlse = dlse.const_data_ptr<float>();

  const Tensor dq = new_laid_out_like(in.q, in.q.size(3));
  const Tensor dk = new_laid_out_like(in.k, in.k.size(3));
  const Tensor dv = new_laid_out_like(in.v, in.v.size(3));
  params.dq = mutable_view(dq), params.dk = mutable_view(dk), params.dv = mutable_view(dv);
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

void set_backend(const std::string& name) {
  TORCH_CHECK_VALUE(name == "auto" || name == "composite" || name == "cpu_fused",
                    "xsa::set_backend: expected auto, composite or cpu_fused, got '", name, "'");
  chosen_backend = name == "auto"        ? Backend::kAuto
                   : name == "composite" ? Backend::kComposite
                                         : Backend::kCpuFused;
}

std::string backend() {
  switch (chosen_backend.load()) {
    case Backend::kComposite:
      return "composite";
    case Backend::kCpuFused:
      return "cpu_fused";
    default:
      return "auto";
  }
}

std::string why_not_fused(const Inputs& inputs, const AttentionOptions& options) {
  const Backend choice = chosen_backend;
  if (choice == Backend::kComposite) return "set_backend('composite') is in force";
  std::string why;
  if (!inputs.q.is_cpu())
    why = c10::str("no fused kernel for ", inputs.q.device().type(), " tensors yet");
  else if (inputs.q.scalar_type() == at::kDouble)
    why = "float64 is for checking, and has no fused kernel";
  else
    why = kernels::unsupported(FusedCall(inputs, options).params);
  TORCH_CHECK_NOT_IMPLEMENTED(why.empty() || choice == Backend::kAuto,
                              "xsa::attention: set_backend('cpu_fused') is in force, but ", why,
                              "; call set_backend('auto')");
  return why;
}

std::string backend_of(const Inputs& inputs, const AttentionOptions& options) {
  check_call(inputs, options);
  const std::string why = why_not_fused(inputs, options);
  return why.empty() ? "cpu_fused" : "composite: " + why;
}

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
