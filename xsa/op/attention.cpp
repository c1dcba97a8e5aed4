#include "xsa/op/attention.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "xsa/op/backend.h"
#include "xsa/op/signature.h"

namespace xsa::op {
namespace {

template <class Result, class... Tensors>
auto find_operator(const char* name) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<Signature<Result, const Tensors&...>>();
}

template <class Handle, class... Tensors>
auto call(const Handle& handle, const AttentionOptions& o, const Tensors&... tensors) {
  return handle.call(tensors..., o.is_causal, o.scale, o.strength, o.learned_strength,
                     o.sink_logits, o.num_sink_keys, o.window, o.cu_seqlens, o.key_start, o.key_end,
                     o.own_offset, o.eps);
}

}  // namespace

Outputs call_attention(const Inputs& in, const AttentionOptions& options) {
  using at::Tensor;
  static const auto handle = find_operator<Outputs, Tensor, Tensor, Tensor>("xsa::attention");
  return call(handle, options, in.q, in.k, in.v);
}

Gradients call_attention_backward(const BackwardInputs& in, const AttentionOptions& options) {
  using at::Tensor;
  static const auto handle =
      find_operator<Gradients, Tensor, OptionalTensor, Tensor, Tensor, Tensor, Tensor, Tensor,
                    Tensor>("xsa::attention_backward");
  return call(handle, options, in.dz, in.dlse, in.q, in.k, in.v, in.z, in.lse, in.c);
}

AttentionResult attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const AttentionOptions& options) {
  auto [z, lse, c] = call_attention({q, k, v}, options);
  return {std::move(z), std::move(lse), std::move(c)};
}

std::string attention_backend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const AttentionOptions& options) {
  return backend_of({q, k, v}, options);
}

}  // namespace xsa::op
