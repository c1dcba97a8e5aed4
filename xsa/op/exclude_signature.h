// xsa::exclude inside: its schema's options as C++ parameters, spelled once, and its parts.
#pragma once

#include <string>
#include <tuple>
#include <utility>

#include "xsa/op/exclude.h"
#include "xsa/op/signature.h"

namespace xsa::op {

struct ExcludeInputs {
  const at::Tensor &y, &v;
};
struct ExcludeBackwardInputs {
  const at::Tensor &dz, &v;
  const at::Tensor &z, &c;  // of the forward
};
using ExcludeOutputs = std::tuple<at::Tensor, at::Tensor>;  // z, c
/// dy, dv, dlearned_strength; the last undefined where there is no such argument.
using ExcludeGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

inline std::string exclude_options_schema(const NumberTypes& types = {}) {
  return types.strength +
         ", Tensor? learned_strength=None, SymInt? own_offset=None, Scalar eps=1e-12";
}

template <class Result, class... Tensors>
using ExcludeSignature = Result(Tensors..., const at::Scalar&, const OptionalTensor&,
                                OptionalSymInt, const at::Scalar&);

/// ExcludeKernel<body, InputStruct, its tensors...>::call has the schema's parameters.
template <auto body, class InputStruct, class... Tensors>
struct ExcludeKernel {
  static auto call(Tensors... tensors, const at::Scalar& strength,
                   const OptionalTensor& learned_strength, OptionalSymInt own_offset,
                   const at::Scalar& eps) {
    return body(InputStruct{tensors...},
                {strength.toDouble(), learned_strength, std::move(own_offset), eps.toDouble()});
  }
};
template <auto body>
using ExcludeForwardKernel = ExcludeKernel<body, ExcludeInputs, T, T>;
template <auto body>
using ExcludeBackwardKernel = ExcludeKernel<body, ExcludeBackwardInputs, T, T, T, T>;

/// Through the dispatcher.
ExcludeOutputs call_exclude(const ExcludeInputs& in, const ExcludeOptions& options);
ExcludeGradients call_exclude_backward(const ExcludeBackwardInputs& in,
                                       const ExcludeOptions& options);

/// Shapes, types, devices and plain numbers; never the data. Also right for symbolic shapes.
void check_exclude(const ExcludeInputs& in, const ExcludeOptions& options);
void check_exclude(const ExcludeBackwardInputs& in, const ExcludeOptions& options);

ExcludeOutputs exclude_composite(const ExcludeInputs& in, const ExcludeOptions& options);
ExcludeGradients exclude_backward_composite(const ExcludeBackwardInputs& in,
                                            const ExcludeOptions& options);
ExcludeOutputs exclude_autograd(const ExcludeInputs& in, const ExcludeOptions& options);
ExcludeGradients exclude_backward_autograd(const ExcludeBackwardInputs& in,
                                           const ExcludeOptions& options);

}  // namespace xsa::op
