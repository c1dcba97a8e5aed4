#include "xsa/op/kernel_call.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

using at::Tensor;

std::array<std::int64_t, 4> strides(const Tensor& tensor) {
  const at::IntArrayRef s = tensor.strides();
  return {s[0], s[1], s[2], s[3]};
}

}  // namespace

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

KernelCall::KernelCall(const Inputs& in, const AttentionOptions& o) : parallel_(aten_threads()) {
  set_sizes(in);
  params.q = kernel_view(in.q), params.k = kernel_view(in.k), params.v = kernel_view(in.v);
  params.is_causal = o.is_causal;
  params.scale = scale_of(in, o);
  params.strength = o.strength;
  params.eps = o.eps;
  params.own_offset = own_offset_of(in, o);
  // No more than all keys: sums with them must not overflow.
  params.window = o.window ? std::min(known(*o.window), in.k.size(2) + 1) : 0;
  params.num_sink_keys = std::min(known(o.num_sink_keys), in.k.size(2));
  set_tensor_options(o);
  params.parallel = &parallel_;
}

void KernelCall::set_sizes(const Inputs& in) {
  params.batch = in.q.size(0), params.query_heads = in.q.size(1), params.queries = in.q.size(2);
  params.key_heads = in.k.size(1), params.keys = in.k.size(2);
  params.head_dim = in.q.size(3), params.value_dim = in.v.size(3);
  params.type = kernel_type(in.q.scalar_type());
}

template <class Number>
const Number* KernelCall::data(const OptionalTensor& option) {
  if (!has(option)) return nullptr;
  converted_.push_back(option->to(c10::CppTypeToScalarType<Number>::value).contiguous());
  return converted_.back().const_data_ptr<Number>();
}

void KernelCall::set_tensor_options(const AttentionOptions& o) {
  params.sink_logits = data<float>(o.sink_logits);
  params.cu_seqlens = data<std::int32_t>(o.cu_seqlens);
  if (has(o.cu_seqlens)) params.documents = o.cu_seqlens->numel() - 1;
  params.key_start = data<std::int64_t>(o.key_start);
  params.key_end = data<std::int64_t>(o.key_end);
  params.learned_strength = data<float>(o.learned_strength);
  if (has(o.learned_strength))
    params.learned_strength_stride =
        learned_strength_stride(*o.learned_strength, params.query_heads, params.queries);
}

kernels::View kernel_view(const Tensor& tensor) {
  return {tensor.const_data_ptr(), strides(tensor)};
}
kernels::MutableView kernel_mutable_view(const Tensor& tensor) {
  return {tensor.mutable_data_ptr(), strides(tensor)};
}

}  // namespace xsa::op
