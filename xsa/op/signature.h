// The schema's long option list as C++ parameters, spelled once: kernels are written as
// body(inputs, options), and the dispatcher is called with (inputs, options).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

#include "xsa/op/attention.h"

namespace xsa::op {

using OptionalTensor = std::optional<at::Tensor>;

struct Inputs {
  const at::Tensor &q, &k, &v;
};
struct BackwardInputs {
  const at::Tensor& dz;        // [B, H, T, Dv]
  const OptionalTensor& dlse;  // [B, H, T]
  const at::Tensor &q, &k, &v;
  const at::Tensor &z, &lse, &c;  // of the forward

  Inputs forward() const { return {q, k, v}; }
};
using Outputs = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // z, lse, c
/// dq, dk, dv, dlearned_strength, dsink_logits; the last two undefined where there is no such
/// argument.
using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

inline constexpr const char* kOptionsSchema =
    "bool is_causal=False, float? scale=None, float strength=1.0, Tensor? learned_strength=None, "
    "Tensor? sink_logits=None, int num_sink_keys=0, int? window=None, Tensor? cu_seqlens=None, "
    "Tensor? key_start=None, Tensor? key_end=None, int? own_offset=None, float eps=1e-12";

template <class Result, class... Tensors>
using Signature = Result(Tensors..., bool, std::optional<double>, double, const OptionalTensor&,
                         const OptionalTensor&, std::int64_t, std::optional<std::int64_t>,
                         const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
                         std::optional<std::int64_t>, double);

/// Kernel<body, InputStruct, its tensors...>::call has the schema's parameters.
template <auto body, class InputStruct, class... Tensors>
struct Kernel {
  static auto call(Tensors... tensors, bool is_causal, std::optional<double> scale, double strength,
                   const OptionalTensor& learned_strength, const OptionalTensor& sink_logits,
                   std::int64_t num_sink_keys, std::optional<std::int64_t> window,
                   const OptionalTensor& cu_seqlens, const OptionalTensor& key_start,
                   const OptionalTensor& key_end, std::optional<std::int64_t> own_offset,
                   double eps) {
    return body(
        InputStruct{tensors...},
        AttentionOptions{is_causal, scale, strength, learned_strength, sink_logits, num_sink_keys,
                         window, cu_seqlens, key_start, key_end, own_offset, eps});
  }
};
using T = const at::Tensor&;
template <auto body>
using ForwardKernel = Kernel<body, Inputs, T, T, T>;
template <auto body>
using BackwardKernel = Kernel<body, BackwardInputs, T, const OptionalTensor&, T, T, T, T, T, T>;

/// Through the dispatcher.
Outputs call_attention(const Inputs& inputs, const AttentionOptions& options);
Gradients call_attention_backward(const BackwardInputs& inputs, const AttentionOptions& options);

// The kernels, one file each; library.cpp registers them.
Outputs composite_forward(const Inputs& inputs, const AttentionOptions& options);
Gradients composite_backward(const BackwardInputs& inputs, const AttentionOptions& options);
Outputs cpu_forward(const Inputs& inputs, const AttentionOptions& options);
Gradients cpu_backward(const BackwardInputs& inputs, const AttentionOptions& options);
Outputs meta_forward(const Inputs& inputs, const AttentionOptions& options);
Gradients meta_backward(const BackwardInputs& inputs, const AttentionOptions& options);
Outputs autograd_forward(const Inputs& inputs, const AttentionOptions& options);
Gradients autograd_backward(const BackwardInputs& inputs, const AttentionOptions& options);
Outputs autocast_cpu_forward(const Inputs& inputs, const AttentionOptions& options);
Outputs autocast_cuda_forward(const Inputs& inputs, const AttentionOptions& options);

}  // namespace xsa::op
