#include "xsa/op/add_layer_norm.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

#include <cmath>
#include <tuple>

#include "xsa/kernels/layer_norm.h"
#include "xsa/op/autocast.h"
#include "xsa/op/backend.h"
#include "xsa/op/derivative.h"
#include "xsa/op/expect.h"
#include "xsa/op/kernel_call.h"
#include "xsa/op/registration.h"
#include "xsa/op/tensors.h"

namespace xsa::op {
namespace {

using at::Tensor;
using torch::autograd::variable_list;

using Normed = std::tuple<Tensor, Tensor, Tensor, Tensor>;  // y, sum, mean, rstd
using NormGradients = std::tuple<Tensor, Tensor, Tensor>;   // dx (and dresidual), dweight, dbias

constexpr const char* kSchema =
    "add_layer_norm(Tensor x, Tensor residual, Tensor weight, Tensor? bias=None, *, Scalar "
    "eps=1e-05)"
    " -> (Tensor y, Tensor sum, Tensor mean, Tensor rstd)";
constexpr const char* kBackwardSchema =
    "add_layer_norm_backward(Tensor dy, Tensor? dsum, Tensor sum, Tensor mean, Tensor rstd, Tensor "
    "weight) -> (Tensor dx, Tensor dweight, Tensor dbias)";

Normed call(const Tensor& x, const Tensor& residual, const Tensor& weight,
            const OptionalTensor& bias, const at::Scalar& eps) {
  using Signature =
      Normed(const Tensor&, const Tensor&, const Tensor&, const OptionalTensor&, const at::Scalar&);
  static const auto handle =
      c10::Dispatcher::singleton().findSchemaOrThrow("xsa::add_layer_norm", "").typed<Signature>();
  return handle.call(x, residual, weight, bias, eps);
}

NormGradients call_backward(const Tensor& dy, const OptionalTensor& dsum, const Tensor& sum,
                            const Tensor& mean, const Tensor& rstd, const Tensor& weight) {
  using Signature = NormGradients(const Tensor&, const OptionalTensor&, const Tensor&,
                                  const Tensor&, const Tensor&, const Tensor&);
  static const auto handle = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("xsa::add_layer_norm_backward", "")
                                 .typed<Signature>();
  return handle.call(dy, dsum, sum, mean, rstd, weight);
}

const Expect expect{"xsa::add_layer_norm"};

void check_like(const char* name, const Tensor& tensor, const Tensor& x) {
  bool same = tensor.dim() == x.dim() && tensor.scalar_type() == x.scalar_type() &&
              tensor.device() == x.device() && tensor.layout() == c10::kStrided;
  for (std::int64_t dim = 0; same && dim < x.dim(); ++dim)
    same = tensor.sym_size(dim).sym_eq(x.sym_size(dim)).expect_true(__FILE__, __LINE__);
  expect(same, name, ": expected sizes, type and device of x, ", describe(x), ", got ",
         describe(tensor), "; expand or cast it first");
}

void check_parameter(const char* name, const Tensor& tensor, const Tensor& x) {
  expect(tensor.dim() == 1 && at::isFloatingType(tensor.scalar_type()) &&
             tensor.device() == x.device(),
         name, ": expected floating-point [C] on the device of x, ", describe(x), ", got ",
         describe(tensor));
  expect(tensor.sym_size(0).sym_eq(x.sym_size(-1)), name, ": expected C = ", x.sym_size(-1),
         " elements, x's last dimension, got ", describe(tensor));
}

void check(const Tensor& x, const Tensor& residual, const Tensor& weight,
           const OptionalTensor& bias, const at::Scalar& given_eps) {
  const double eps = given_eps.toDouble();
  const at::ScalarType type = x.scalar_type();
  expect(x.layout() == c10::kStrided && x.dim() >= 1, "x: expected a dense tensor [..., C], got ",
         describe(x));
  expect(type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf,
         "x: expected float32, float64, bfloat16 or float16, got ", describe(x));
  expect(x.sym_size(-1).sym_ge(1), "x: expected a last dimension of at least 1, got ", describe(x));
  check_like("residual", residual, x);
  check_parameter("weight", weight, x);
  if (has(bias)) check_parameter("bias", *bias, x);
  expect(std::isfinite(eps) && eps > 0, "eps: expected a finite number above 0, got ", eps);
}

/// New tensors, contiguous: what the forward gives, without values.
Normed new_outputs(const Tensor& x) {
  const auto sizes = x.sym_sizes();
  const auto rows = sizes.slice(0, sizes.size() - 1);
  const auto sums = x.options().dtype(accumulate_type(x));
  return {at::empty_symint(sizes, x.options()), at::empty_symint(sizes, x.options()),
          at::empty_symint(rows, sums), at::empty_symint(rows, sums)};
}

NormGradients new_gradients(const Tensor& sum, const Tensor& weight) {
  return {at::empty_symint(sum.sym_sizes(), sum.options()),
          at::empty_symint(weight.sym_sizes(), weight.options()),
          at::empty_symint(weight.sym_sizes(), weight.options())};
}

Normed meta(const Tensor& x, const Tensor& residual, const Tensor& weight,
            const OptionalTensor& bias, const at::Scalar& eps) {
  check(x, residual, weight, bias, eps);
  return new_outputs(x);
}

NormGradients meta_gradients(const Tensor&, const OptionalTensor&, const Tensor& sum, const Tensor&,
                             const Tensor&, const Tensor& weight) {
  return new_gradients(sum, weight);
}

Normed composite(const Tensor& x, const Tensor& residual, const Tensor& weight,
                 const OptionalTensor& bias, const at::Scalar& eps) {
  check(x, residual, weight, bias, eps);
  const at::ScalarType type = accumulate_type(x);
  const Tensor sum = at::add(x, residual).contiguous();
  const Tensor wide = sum.to(type);
  const Tensor mean = wide.mean(-1);
  const Tensor centered = wide - mean.unsqueeze(-1);
  const Tensor rstd = (centered.square().mean(-1) + eps.toDouble()).rsqrt();
  Tensor y = centered * rstd.unsqueeze(-1) * weight.to(type);
  if (has(bias)) y = y + bias->to(type);
  return {y.to(x.scalar_type()), sum, mean, rstd};
}

NormGradients composite_gradients(const Tensor& dy, const OptionalTensor& dsum, const Tensor& sum,
                                  const Tensor& mean, const Tensor& rstd, const Tensor& weight) {
  const at::ScalarType type = accumulate_type(sum);
  const Tensor gradient = dy.to(type), scale = rstd.unsqueeze(-1);
  const Tensor normed = (sum.to(type) - mean.unsqueeze(-1)) * scale;
  const Tensor g = gradient * weight.to(type);
  Tensor dx = scale * (g - g.mean(-1, true) - normed * (g * normed).mean(-1, true));
  if (has(dsum)) dx = dx + dsum->to(type);
  const auto over_rows = [&](const Tensor& terms) {
    return terms.reshape_symint({-1, sum.sym_size(-1)}).sum(0).to(weight.scalar_type());
  };
  if (sum.sym_numel() == 0) {
    const Tensor none = at::zeros_like(weight);
    return {dx.to(sum.scalar_type()).contiguous(), none, none.clone()};
  }
  return {dx.to(sum.scalar_type()).contiguous(), over_rows(gradient * normed), over_rows(gradient)};
}

/// What both directions share. Keeps `parallel` and the float32 weight alive.
struct Call {
  Call(const Tensor& x, const Tensor& given_weight)
      : weight(given_weight.to(at::kFloat).contiguous()), parallel(aten_threads()) {
    params.width = x.size(-1), params.rows = x.numel() / params.width;
    params.type = kernel_type(x.scalar_type());
    params.weight = weight.const_data_ptr<float>();
    params.parallel = &parallel;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Tensor weight;
  Parallel parallel;
  kernels::AddLayerNormParams params;
};

Normed cpu(const Tensor& x, const Tensor& residual, const Tensor& weight,
           const OptionalTensor& bias, const at::Scalar& eps) {
  if (!takes_kernel(expect.op, x)) return composite(x, residual, weight, bias, eps);
  check(x, residual, weight, bias, eps);
  const Tensor dense = x.contiguous(), dense_residual = residual.contiguous();
  const Tensor wide_bias = has(bias) ? bias->to(at::kFloat).contiguous() : Tensor();
  const Normed out = new_outputs(x);
  const auto& [y, sum, mean, rstd] = out;
  Call call(x, weight);
  call.params.eps = eps.toDouble();
  call.params.x = dense.const_data_ptr(), call.params.residual = dense_residual.const_data_ptr();
  if (has(bias)) call.params.bias = wide_bias.const_data_ptr<float>();
  call.params.y = y.mutable_data_ptr(), call.params.sum = sum.mutable_data_ptr();
  call.params.mean = mean.mutable_data_ptr<float>();
  call.params.rstd = rstd.mutable_data_ptr<float>();
  kernels::add_layer_norm_forward(call.params);
  return out;
}

NormGradients cpu_gradients(const Tensor& dy, const OptionalTensor& dsum, const Tensor& sum,
                            const Tensor& mean, const Tensor& rstd, const Tensor& weight) {
  if (!takes_kernel(expect.op, sum)) return composite_gradients(dy, dsum, sum, mean, rstd, weight);
  const Tensor dense_dy = dy.contiguous(), dense_sum = sum.contiguous();
  const Tensor dense_dsum = has(dsum) ? dsum->contiguous() : Tensor();
  const Tensor dense_mean = mean.contiguous(), dense_rstd = rstd.contiguous();
  const Tensor dx = at::empty(sum.sizes(), sum.options());
  const Tensor dweight = at::empty(weight.sizes(), weight.options().dtype(at::kFloat));
  const Tensor dbias = at::empty_like(dweight);
  Call call(sum, weight);
  // The kernel only reads these three; their fields are mutable for the forward's sake.
  call.params.sum = const_cast<void*>(dense_sum.const_data_ptr());
  call.params.mean = const_cast<float*>(dense_mean.const_data_ptr<float>());
  call.params.rstd = const_cast<float*>(dense_rstd.const_data_ptr<float>());
  call.params.dy = dense_dy.const_data_ptr();
  if (has(dsum)) call.params.dsum = dense_dsum.const_data_ptr();
  call.params.dx = dx.mutable_data_ptr();
  call.params.dweight = dweight.mutable_data_ptr<float>();
  call.params.dbias = dbias.mutable_data_ptr<float>();
  kernels::add_layer_norm_backward(call.params);
  return {dx, dweight.to(weight.scalar_type()), dbias.to(weight.scalar_type())};
}

/// The types that PyTorch gives `layer_norm(x + residual)` in such a region: a sum has the wider of
/// its terms' types, and on CUDA a LayerNorm is float32 whatever comes.
template <at::DeviceType device>
Normed autocast(const Tensor& x, const Tensor& residual, const Tensor& weight,
                const OptionalTensor& bias, const at::Scalar& eps) {
  const Autocast region(device);
  at::ScalarType type = c10::promoteTypes(x.scalar_type(), residual.scalar_type());
  if (device == at::kCUDA && c10::isReducedFloatingType(type)) type = at::kFloat;
  return call(region.cast(x, type), region.cast(residual, type), weight, bias, eps);
}

struct AddLayerNormRule {
  static constexpr const char* kName = "XsaAddLayerNormBackward";
  /// sum, mean, rstd and weight.
  static constexpr std::size_t kKept = 4, kOutputs = 1;
  struct Options {
    std::optional<at::ScalarType> bias_type;
  };

  template <class SomeOptions, class Visitor>
  static void visit(SomeOptions& o, const Visitor& visitor) {
    visitor(o.bias_type);
  }

  /// incoming: dy, dsum. Returns those of x, residual, weight and bias.
  static variable_list gradients(const variable_list& incoming,
                                 const std::array<Tensor, kKept>& kept, const Options& options) {
    const auto& [sum, mean, rstd, weight] = kept;
    const Tensor &dy = incoming[0], &dsum = incoming[1];
    if (!dy.defined()) return {dsum, dsum, Tensor(), Tensor()};
    auto [dx, dweight, dbias] = call_backward(dy, if_defined(dsum), sum, mean, rstd, weight);
    if (options.bias_type) dbias = dbias.to(*options.bias_type);
    return {dx, dx, dweight, options.bias_type ? dbias : Tensor()};
  }
};

Normed autograd(const Tensor& x, const Tensor& residual, const Tensor& weight,
                const OptionalTensor& bias, const at::Scalar& eps) {
  refuse_forward_mode(expect.op, {x, residual, weight, bias});
  const auto node = node_of<AddLayerNormRule>(x, residual, weight, bias);
  const Normed out = below_autograd([&] { return call(x, residual, weight, bias, eps); });
  if (!node) return out;
  const auto& [y, sum, mean, rstd] = out;
  torch::autograd::set_history(y, node);
  torch::autograd::set_history(sum, node);
  node->save({sum, mean, rstd, weight},
             {has(bias) ? std::optional(bias->scalar_type()) : std::nullopt});
  return out;
}

NormGradients autograd_gradients(const Tensor& dy, const OptionalTensor& dsum, const Tensor& sum,
                                 const Tensor& mean, const Tensor& rstd, const Tensor& weight) {
  const NormGradients gradients =
      below_autograd([&] { return call_backward(dy, dsum, sum, mean, rstd, weight); });
  refuse_second_derivative(expect.op, "sum and the norm", gradients, dy, dsum, sum, mean, rstd,
                           weight);
  return gradients;
}

}  // namespace

std::pair<Tensor, Tensor> add_layer_norm(const Tensor& x, const Tensor& residual,
                                         const Tensor& weight, const OptionalTensor& bias,
                                         double eps) {
  auto [y, sum, mean, rstd] = call(x, residual, weight, bias, eps);
  return {std::move(y), std::move(sum)};
}

void register_add_layer_norm(torch::Library& library) {
  using c10::DispatchKey;
  library.def(kSchema, {at::Tag::pt2_compliant_tag});
  library.def(kBackwardSchema, {at::Tag::pt2_compliant_tag});
  const auto impl = [&](const char* name, DispatchKey key, auto* function) {
    library.impl(name, torch::dispatch(key, function));
  };
  impl("add_layer_norm", DispatchKey::CompositeExplicitAutograd, &composite);
  impl("add_layer_norm", DispatchKey::CPU, &cpu);
  impl("add_layer_norm", DispatchKey::Meta, &meta);
  impl("add_layer_norm", DispatchKey::Autograd, &autograd);
  impl("add_layer_norm", DispatchKey::AutocastCPU, &autocast<at::kCPU>);
  impl("add_layer_norm", DispatchKey::AutocastCUDA, &autocast<at::kCUDA>);
  impl("add_layer_norm_backward", DispatchKey::CompositeExplicitAutograd, &composite_gradients);
  impl("add_layer_norm_backward", DispatchKey::CPU, &cpu_gradients);
  impl("add_layer_norm_backward", DispatchKey::Meta, &meta_gradients);
  impl("add_layer_norm_backward", DispatchKey::Autograd, &autograd_gradients);
}

}  // namespace xsa::op
