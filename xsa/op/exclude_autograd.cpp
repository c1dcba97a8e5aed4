// The derivative of xsa::exclude, as a hand-written autograd node. It keeps v, z and one number a
// row: z is what the caller goes on with, and y can be freed.
#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <mutex>

#include "xsa/op/derivative.h"
#include "xsa/op/exclude_signature.h"
#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

using at::Tensor;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

class ExcludeBackward : public torch::autograd::Node {
 public:
  void save(const ExcludeInputs& in, const ExcludeOutputs& out, const ExcludeOptions& options) {
    v_ = SavedVariable(in.v, false);
    z_ = SavedVariable(std::get<0>(out), true);
    c_ = SavedVariable(std::get<1>(out), false);
    options_ = options;
    if (!has(options.learned_strength)) return;
    learned_strength_ = SavedVariable(*options.learned_strength, false);
    options_.learned_strength.emplace();  // presence only
  }

  /// gradients: dz. Returns those of y, v and learned_strength.
  variable_list apply(variable_list&& gradients) override {
    const std::lock_guard lock(mutex_);
    if (!gradients[0].defined()) return variable_list(3);
    ExcludeOptions options = options_;
    if (options.learned_strength) options.learned_strength = learned_strength_.unpack();
    const Tensor v = v_.unpack(), z = z_.unpack(getptr()), c = c_.unpack();
    auto [dy, dv, dstrength] = call_exclude_backward({gradients[0], v, z, c}, options);
    return {dy, dv, dstrength};
  }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    for (SavedVariable* saved : {&v_, &z_, &c_, &learned_strength_}) saved->reset_data();
  }

  std::string name() const override { return "XsaExcludeBackward"; }

 private:
  ExcludeOptions options_;
  SavedVariable v_, z_, c_, learned_strength_;
};

}  // namespace

ExcludeOutputs exclude_autograd(const ExcludeInputs& in, const ExcludeOptions& options) {
  refuse_forward_mode("xsa::exclude", {in.y, in.v, options.learned_strength});
  c10::intrusive_ptr<ExcludeBackward> node;
  if (torch::autograd::compute_requires_grad(in.y, in.v, options.learned_strength)) {
    node = c10::make_intrusive<ExcludeBackward>();
    node->set_next_edges(torch::autograd::collect_next_edges(in.y, in.v, options.learned_strength));
  }
  const ExcludeOutputs out = [&] {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return call_exclude(in, options);
  }();
  if (node) {
    torch::autograd::set_history(std::get<0>(out), node);
    node->save(in, out, options);
  }
  return out;
}

ExcludeGradients exclude_backward_autograd(const ExcludeBackwardInputs& in,
                                           const ExcludeOptions& options) {
  refuse_forward_mode("xsa::exclude_backward", {in.dz, in.v, in.z, in.c, options.learned_strength});
  const ExcludeGradients gradients = [&] {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return call_exclude_backward(in, options);
  }();
  refuse_second_derivative("xsa::exclude", "exclusion", gradients, in.dz, in.v, in.z,
                           options.learned_strength);
  return gradients;
}

}  // namespace xsa::op
