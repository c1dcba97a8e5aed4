// The derivative, as a hand-written autograd node: torch::autograd::Function breaks torch.func.
#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <mutex>

#include "xsa/op/derivative.h"
#include "xsa/op/signature.h"
#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

using at::Tensor;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

class AttentionBackward : public torch::autograd::Node {
 public:
  void save(const Inputs& in, const Outputs& out, const AttentionOptions& options) {
    q_ = SavedVariable(in.q, false), k_ = SavedVariable(in.k, false);
    v_ = SavedVariable(in.v, false);
    z_ = SavedVariable(std::get<0>(out), true), lse_ = SavedVariable(std::get<1>(out), true);
    c_ = SavedVariable(std::get<2>(out), false);
    options_ = options;
    for (const auto& [option, saved] : tensor_options())
      if (has(*option)) {
        *saved = SavedVariable(**option, false);
        option->emplace();  // presence only: the tensor itself is kept by `saved`
      }
  }

  /// gradients: dz, dlse; either may be undefined. Returns those of q, k, v, learned_strength and
  /// sink_logits.
  variable_list apply(variable_list&& gradients) override {
    const std::lock_guard lock(mutex_);
    const Tensor& dlse = gradients[1];
    if (!gradients[0].defined() && !dlse.defined()) return variable_list(5);
    const Tensor z = z_.unpack(getptr());
    const Tensor dz = gradients[0].defined()
                          ? gradients[0]
                          : at::zeros({}, z.options()).expand_symint(z.sym_sizes());
    AttentionOptions options = options_;
    for (const auto& [option, saved] : tensor_options(options))
      if (option->has_value()) *option = saved->unpack();
    const Tensor q = q_.unpack(), k = k_.unpack(), v = v_.unpack();
    const Tensor lse = lse_.unpack(getptr()), c = c_.unpack();
    auto [dq, dk, dv, dstrength, dsink] = call_attention_backward(
        {dz, dlse.defined() ? OptionalTensor(dlse) : std::nullopt, q, k, v, z, lse, c}, options);
    return {dq, dk, dv, dstrength, dsink};
  }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    for (SavedVariable* saved : {&q_, &k_, &v_, &z_, &lse_, &c_, &learned_strength_, &sink_logits_,
                                 &cu_seqlens_, &key_start_, &key_end_})
      saved->reset_data();
  }

  std::string name() const override { return "XsaAttentionBackward"; }

 private:
  using SavedOption = std::pair<OptionalTensor*, SavedVariable*>;
  std::array<SavedOption, 5> tensor_options(AttentionOptions& o) {
    return {{{&o.learned_strength, &learned_strength_},
             {&o.sink_logits, &sink_logits_},
             {&o.cu_seqlens, &cu_seqlens_},
             {&o.key_start, &key_start_},
             {&o.key_end, &key_end_}}};
  }
  std::array<SavedOption, 5> tensor_options() { return tensor_options(options_); }

  AttentionOptions options_;
  SavedVariable q_, k_, v_, z_, lse_, c_;
  SavedVariable learned_strength_, sink_logits_, cu_seqlens_, key_start_, key_end_;
};

}  // namespace

Outputs autograd_forward(const Inputs& in, const AttentionOptions& options) {
  refuse_forward_mode("xsa::attention",
                      {in.q, in.k, in.v, options.learned_strength, options.sink_logits});
  const bool differentiable = torch::autograd::compute_requires_grad(
      in.q, in.k, in.v, options.learned_strength, options.sink_logits);
  c10::intrusive_ptr<AttentionBackward> node;
  if (differentiable) {
    node = c10::make_intrusive<AttentionBackward>();
    node->set_next_edges(torch::autograd::collect_next_edges(
        in.q, in.k, in.v, options.learned_strength, options.sink_logits));
  }
  const Outputs out = [&] {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return call_attention(in, options);
  }();
  if (differentiable) {
    torch::autograd::set_history(std::get<0>(out), node);
    torch::autograd::set_history(std::get<1>(out), node);
    node->save(in, out, options);
  }
  return out;
}

Gradients autograd_backward(const BackwardInputs& in, const AttentionOptions& options) {
  refuse_forward_mode("xsa::attention_backward", {in.dz, in.dlse, in.q, in.k, in.v,
                                                  options.learned_strength, options.sink_logits});
  const Gradients gradients = [&] {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return call_attention_backward(in, options);
  }();
  refuse_second_derivative("xsa::attention", "attention", gradients, in.dz, in.dlse, in.q, in.k,
                           in.v, in.z, in.lse, options.learned_strength, options.sink_logits);
  return gradients;
}

}  // namespace xsa::op
