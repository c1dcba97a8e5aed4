#include "xsa/model/linear.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string_view>

#include "xsa/kernels/linear.h"
#include "xsa/op/kernel_call.h"

namespace xsa::model {
namespace {

using OneDnnLinear = at::Tensor(const at::Tensor& x, const at::Tensor& weight,
                                const std::optional<at::Tensor>& bias, std::string_view activation,
                                c10::List<std::optional<at::Scalar>> scalars,
                                std::optional<std::string_view> algorithm);

/// ATen's product is MKL's, whose AVX-512 code runs on Intel's processors alone. On others oneDNN's
/// has 1.4 to 2.5 times the speed (Zen 5, measured), once a new shape has cost half a millisecond.
std::optional<c10::TypedOperatorHandle<OneDnnLinear>> find_one_dnn() {
#if defined(__x86_64__)
  if (__builtin_cpu_is("intel") || !at::globalContext().userEnabledMkldnn()) return std::nullopt;
  const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
  if (found) return found->typed<OneDnnLinear>();
#endif
  return std::nullopt;
}

at::Tensor many_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  static const auto one_dnn = find_one_dnn();
  constexpr std::int64_t kLarge = std::int64_t{1} << 28;  // multiplications
  if (!one_dnn || x.size(0) * weight.numel() < kLarge) return at::linear(x, weight, bias);
  return one_dnn->call(x, weight, bias.defined() ? std::optional(bias) : std::nullopt, "none",
                       c10::List<std::optional<at::Scalar>>(), std::nullopt);
}

}  // namespace

at::Tensor Linear::operator()(const at::Tensor& x) const {
  if (x.size(0) > kFewRows && weight.scalar_type() == at::kFloat) return many_rows(x, weight, bias);
  const at::Tensor rows = x.contiguous();
  const at::Tensor y = at::empty({x.size(0), weight.size(0)}, x.options());
  kernels::LinearParams params;
  params.rows = x.size(0), params.inputs = x.size(1), params.outputs = weight.size(0);
  params.type = op::kernel_type(weight.scalar_type());
  params.x = rows.const_data_ptr<float>();
  params.weight = weight.const_data_ptr();
  if (bias.defined()) params.bias = bias.const_data_ptr<float>();
  params.y = y.mutable_data_ptr<float>();
  const Parallel parallel = op::aten_threads();
  params.parallel = &parallel;
  kernels::linear(params);
  return y;
}

}  // namespace xsa::model
