// The derivative of xsa::exclude. It keeps v, z and one number a row: z is what the caller goes on
// with, and y can be freed.
#include <ATen/ATen.h>

#include "xsa/op/derivative.h"
#include "xsa/op/exclude_signature.h"
#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

using at::Tensor;
using torch::autograd::variable_list;

struct ExcludeRule {
  static constexpr const char* kName = "XsaExcludeBackward";
  /// z, c, v and a learned strength.
  static constexpr std::size_t kKept = 4, kOutputs = 1;
  struct Options {
    double strength = 0;
    OptionalSymInt own_offset;
    double eps = 0;
  };

  template <class SomeOptions, class Visitor>
  static void visit(SomeOptions& o, const Visitor& visitor) {
    visitor(o.strength), visitor(o.own_offset), visitor(o.eps);
  }

  /// incoming: dz. Returns those of y, v and learned_strength.
  static variable_list gradients(const variable_list& incoming,
                                 const std::array<Tensor, kKept>& kept, const Options& o) {
    if (!incoming[0].defined()) return variable_list(3);
    const auto& [z, c, v, learned_strength] = kept;
    auto [dy, dv, dstrength] = call_exclude_backward(
        {incoming[0], v, z, c}, {o.strength, if_defined(learned_strength), o.own_offset, o.eps});
    return {dy, dv, dstrength};
  }
};

}  // namespace

ExcludeOutputs exclude_autograd(const ExcludeInputs& in, const ExcludeOptions& options) {
  refuse_forward_mode("xsa::exclude", {in.y, in.v, options.learned_strength});
  const auto node = node_of<ExcludeRule>(in.y, in.v, options.learned_strength);
  const ExcludeOutputs out = below_autograd([&] { return call_exclude(in, options); });
  if (!node) return out;
  const auto& [z, c] = out;
  torch::autograd::set_history(z, node);
  node->save({z, c, in.v, or_undefined(options.learned_strength)},
             {options.strength, options.own_offset, options.eps});
  return out;
}

ExcludeGradients exclude_backward_autograd(const ExcludeBackwardInputs& in,
                                           const ExcludeOptions& options) {
  refuse_forward_mode("xsa::exclude_backward", {in.dz, in.v, in.z, in.c, options.learned_strength});
  const ExcludeGradients gradients =
      below_autograd([&] { return call_exclude_backward(in, options); });
  refuse_second_derivative("xsa::exclude", "exclusion", gradients, in.dz, in.v, in.z,
                           options.learned_strength);
  return gradients;
}

}  // namespace xsa::op
