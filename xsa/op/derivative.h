// The operators' derivatives: the node that stands in the backward graph, and what is refused.
// torch::autograd::Function would break torch.func.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/dynamo/compiled_autograd.h>

#include <array>
#include <initializer_list>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "xsa/op/signature.h"

namespace xsa::op {

/// A node whose gradients are a function of the incoming ones and of what the forward kept, a Rule:
///   kName      of the node
///   kKept      how many tensors are kept; an undefined one stands for none
///   kOutputs   how many of them, the first, are differentiable outputs of the forward
///   Options    the plain values that are kept, and visit(options, f), which calls f with each
///   gradients(incoming, kept, options)    one for each input; an incoming one may be undefined
/// Compiled autograd traces such a node: tensors and SymInts become inputs of its graph, the other
/// values a part of its key.
template <class Rule>
class BackwardNode final : public torch::autograd::Node {
 public:
  using Tensor = at::Tensor;
  using Kept = std::array<Tensor, Rule::kKept>;
  using Options = typename Rule::Options;
  using variable_list = torch::autograd::variable_list;

  /// After set_history, so that an output among `kept` is not kept alive by itself.
  void save(const Kept& kept, Options options) {
    for (std::size_t n = 0; n < kept.size(); ++n)
      kept_[n] = torch::autograd::SavedVariable(kept[n], is_output(n));
    options_ = std::move(options);
  }

  variable_list apply(variable_list&& incoming) override {
    const std::lock_guard lock(mutex_);
    return Rule::gradients(incoming, unpack(), options_);
  }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    for (auto& saved : kept_) saved.reset_data();
  }

  std::string name() const override { return Rule::kName; }

  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override {
    for (std::size_t n = 0; n < kept_.size(); ++n) args.collect(kept_[n], is_output(n));
    Rule::visit(options_, [&](const auto& value) { args.collect(value); });
  }

  variable_list apply_with_saved(const variable_list& incoming,
                                 torch::dynamo::autograd::SwapSavedVariables& swap) override {
    namespace compiled = torch::dynamo::autograd;
    for (auto& saved : kept_) swap.before(saved);
    Rule::visit(options_, [&](auto& value) { swap.before(value); });
    torch::autograd::ivalue_list packed;
    std::vector<at::TypePtr> types;
    const auto pack = [&](const auto& value) {
      using Packer = compiled::IValuePacker<std::decay_t<decltype(value)>>;
      packed.push_back(Packer::pack(value)), types.push_back(Packer::packed_type());
    };
    for (const Tensor& tensor : unpack()) pack(tensor);
    Rule::visit(options_, pack);
    const auto& compiler = compiled::getPyCompilerInterface();
    // A name can be bound once in a process.
    static const std::string function = compiler->bind_function(swap.get_py_compiler(), Rule::kName,
                                                                &from_packed, std::move(types));
    using Metadata = std::vector<std::optional<torch::autograd::InputMetadata>>;
    variable_list gradients = compiler->call_function(
        swap.get_py_compiler(), "apply_functional", function, incoming, packed,
        compiled::IValuePacker<Metadata>::pack(compiled::get_input_metadata(next_edges())));
    for (auto& saved : kept_) swap.after(saved);
    Rule::visit(options_, [&](auto& value) { swap.after(value); });
    return gradients;
  }

 private:
  static constexpr bool is_output(std::size_t n) { return n < Rule::kOutputs; }

  Kept unpack() {
    Kept kept;
    for (std::size_t n = 0; n < kept.size(); ++n)
      kept[n] = is_output(n) ? kept_[n].unpack(getptr()) : kept_[n].unpack();
    return kept;
  }

  static variable_list from_packed(const variable_list& incoming,
                                   const torch::autograd::ivalue_list& packed) {
    auto next = packed.begin();
    Kept kept;
    for (Tensor& tensor : kept) tensor = (next++)->toTensor();
    Options options;
    Rule::visit(options, [&](auto& value) {
      value = torch::dynamo::autograd::IValuePacker<std::decay_t<decltype(value)>>::unpack(*next++);
    });
    return Rule::gradients(incoming, kept, options);
  }

  std::array<torch::autograd::SavedVariable, Rule::kKept> kept_;
  Options options_;
};

/// The node of a call with these inputs; none where nothing of it can be differentiated.
template <class Rule, class... Inputs>
c10::intrusive_ptr<BackwardNode<Rule>> node_of(const Inputs&... inputs) {
  if (!torch::autograd::compute_requires_grad(inputs...)) return {};
  auto node = c10::make_intrusive<BackwardNode<Rule>>();
  node->set_next_edges(torch::autograd::collect_next_edges(inputs...));
  return node;
}

template <class Call>
auto below_autograd(const Call& call) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  return call();
}

inline OptionalTensor if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

inline at::Tensor or_undefined(const OptionalTensor& tensor) {
  return tensor.value_or(at::Tensor());
}

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
