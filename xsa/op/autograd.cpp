// The attention's derivative.
#include <ATen/ATen.h>

#include "xsa/op/derivative.h"
#include "xsa/op/signature.h"
#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

using at::Tensor;
using torch::autograd::variable_list;

struct AttentionRule {
  static constexpr const char* kName = "XsaAttentionBackward";
  /// z, lse, c, q, k, v, and the options that are tensors.
  static constexpr std::size_t kKept = 11, kOutputs = 2;
  using Options = AttentionOptions;
  using Kept = std::array<Tensor, kKept>;

  template <class SomeOptions, class Visitor>
  static void visit(SomeOptions& o, const Visitor& visitor) {
    visitor(o.is_causal), visitor(o.scale), visitor(o.strength), visitor(o.num_sink_keys);
    visitor(o.window), visitor(o.own_offset), visitor(o.eps);
  }

  static Kept kept(const Inputs& in, const Outputs& out, const AttentionOptions& o) {
    const auto& [z, lse, c] = out;
    return {z,
            lse,
            c,
            in.q,
            in.k,
            in.v,
            or_undefined(o.learned_strength),
            or_undefined(o.sink_logits),
            or_undefined(o.cu_seqlens),
            or_undefined(o.key_start),
            or_undefined(o.key_end)};
  }

  static Options plain(AttentionOptions o) {
    for (OptionalTensor* tensor :
         {&o.learned_strength, &o.sink_logits, &o.cu_seqlens, &o.key_start, &o.key_end})
      tensor->reset();
    return o;
  }

  /// incoming: dz, dlse. Returns those of q, k, v, learned_strength and sink_logits.
  static variable_list gradients(const variable_list& incoming, const Kept& kept, Options options) {
    const auto& [z, lse, c, q, k, v, learned_strength, sink_logits, cu_seqlens, key_start,
                 key_end] = kept;
    const Tensor& dlse = incoming[1];
    if (!incoming[0].defined() && !dlse.defined()) return variable_list(5);
    const Tensor dz =
        incoming[0].defined() ? incoming[0] : z.new_zeros_symint({}).expand_symint(z.sym_sizes());
    options.learned_strength = if_defined(learned_strength);
    options.sink_logits = if_defined(sink_logits), options.cu_seqlens = if_defined(cu_seqlens);
    options.key_start = if_defined(key_start), options.key_end = if_defined(key_end);
    auto [dq, dk, dv, dstrength, dsink] =
        call_attention_backward({dz, if_defined(dlse), q, k, v, z, lse, c}, options);
    return {dq, dk, dv, dstrength, dsink};
  }
};

}  // namespace

Outputs autograd_forward(const Inputs& in, const AttentionOptions& options) {
  refuse_forward_mode("xsa::attention",
                      {in.q, in.k, in.v, options.learned_strength, options.sink_logits});
  const auto node =
      node_of<AttentionRule>(in.q, in.k, in.v, options.learned_strength, options.sink_logits);
  const Outputs out = below_autograd([&] { return call_attention(in, options); });
  if (!node) return out;
  torch::autograd::set_history(std::get<0>(out), node);
  torch::autograd::set_history(std::get<1>(out), node);
  node->save(AttentionRule::kept(in, out, options), AttentionRule::plain(options));
  return out;
}

Gradients autograd_backward(const BackwardInputs& in, const AttentionOptions& options) {
  refuse_forward_mode("xsa::attention_backward", {in.dz, in.dlse, in.q, in.k, in.v,
                                                  options.learned_strength, options.sink_logits});
  const Gradients gradients = below_autograd([&] { return call_attention_backward(in, options); });
  refuse_second_derivative("xsa::attention", "attention", gradients, in.dz, in.dlse, in.q, in.k,
                           in.v, in.z, in.lse, options.learned_strength, options.sink_logits);
  return gradients;
}

}  // namespace xsa::op
