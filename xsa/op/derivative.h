// What the operators' derivatives refuse, with a reason.
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <initializer_list>
#include <string>
#include <tuple>

#include "xsa/op/signature.h"

namespace xsa::op {

inline void refuse_forward_mode(const char* op, std::initializer_list<OptionalTensor> tensors) {
  for (const OptionalTensor& tensor : tensors)
    TORCH_CHECK_NOT_IMPLEMENTED(!torch::autograd::isFwGradDefined(tensor), op,
                                ": forward-mode automatic differentiation (jvp) is not supported; "
                                "use backward, torch.func.grad or torch.func.vjp");
}

/// Makes gradients, a tuple of tensors, raise an error when somebody differentiates them again, not
/// before: torch.func.grad and create_graph=True record this call even where they never do.
/// `inputs`: what the gradients depend on.
template <class Gradients, class... Inputs>
void refuse_second_derivative(const char* op, const char* what, const Gradients& gradients,
                              const Inputs&... inputs) {
  if (!torch::autograd::compute_requires_grad(inputs...)) return;
  const auto refusal = c10::make_intrusive<torch::autograd::Error>(
      std::string(op) +
          " has no second derivative: its gradients cannot be differentiated again. For double "
          "backward, write the " +
          what + " in plain PyTorch operators",
      torch::autograd::collect_next_edges(inputs...));
  std::apply(
      [&](const auto&... gradient) { (torch::autograd::set_history(gradient, refusal), ...); },
      gradients);
}

}  // namespace xsa::op
