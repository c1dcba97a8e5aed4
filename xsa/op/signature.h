// The schema's long option list as C++ parameters, spelled once: kernels are written as
// body(inputs, options), and the dispatcher is called with (inputs, options).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>

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

/// What a schema says of a number. A changing integer is a SymInt, so that one compilation serves
/// all its values. A real number is a Scalar: a float argument would take a one-element tensor and
/// lose its gradient, while a tensor goes to the overload of tensor_number.h.
struct NumberTypes {
  std::string scale = "Scalar? scale=None";
  std::string strength = "Scalar strength=1.0";
};
inline std::string options_schema(const NumberTypes& types = {}) {
  return "bool is_causal=False, " + types.scale + ", " + types.strength +
         ", Tensor? learned_strength=None, Tensor? sink_logits=None, SymInt num_sink_keys=0, "
         "SymInt? window=None, Tensor? cu_seqlens=None, Tensor? key_start=None, Tensor? "
         "key_end=None, SymInt? own_offset=None, Scalar eps=1e-12";
}

using OptionalScalar = std::optional<at::Scalar>;
using OptionalSymInt = std::optional<c10::SymInt>;

template <class Result, class... Tensors>
using Signature = Result(Tensors..., bool, const OptionalScalar&, const at::Scalar&,
                         const OptionalTensor&, const OptionalTensor&, c10::SymInt, OptionalSymInt,
                         const OptionalTensor&, const OptionalTensor&, const OptionalTensor&,
                         OptionalSymInt, const at::Scalar&);

/// Kernel<body, InputStruct, its tensors...>::call has the schema's parameters.
template <auto body, class InputStruct, class... Tensors>
struct Kernel {
  static auto call(Tensors... tensors, bool is_causal, const OptionalScalar& scale,
                   const at::Scalar& strength, const OptionalTensor& learned_strength,
                   const OptionalTensor& sink_logits, c10::SymInt num_sink_keys,
                   OptionalSymInt window, const OptionalTensor& cu_seqlens,
                   const OptionalTensor& key_start, const OptionalTensor& key_end,
                   OptionalSymInt own_offset, const at::Scalar& eps) {
    return body(InputStruct{tensors...},
                AttentionOptions{is_causal, scale ? std::optional(scale->toDouble()) : std::nullopt,
                                 strength.toDouble(), learned_strength, sink_logits,
                                 std::move(num_sink_keys), std::move(window), cu_seqlens, key_start,
                                 key_end, std::move(own_offset), eps.toDouble()});
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
