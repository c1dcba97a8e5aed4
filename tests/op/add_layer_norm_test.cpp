// The operator against plain PyTorch operators with automatic differentiation; the kernel itself is
// held to the double reference in tests/kernels.
#include "xsa/op/add_layer_norm.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/op/cases.h"
#include "tests/support/compare.h"
#include "tests/support/tolerance.h"

namespace xsa::op::testing {
namespace {

using at::Tensor;
using xsa::testing::is_near;

struct Case {
  explicit Case(at::ScalarType type, bool with_bias = true) {
    at::manual_seed(6);
    x = at::randn({3, 5, 37}, at::kDouble).to(type);
    residual = at::randn({3, 5, 37}, at::kDouble).to(type);
    dy = at::randn({3, 5, 37}, at::kDouble).to(type);
    dsum = at::randn({3, 5, 37}, at::kDouble).to(type);
    weight = (1 + 0.3 * at::randn({37}, at::kDouble)).to(type);
    if (with_bias) bias = at::randn({37}, at::kDouble).to(type);
  }
  Case to(at::ScalarType type) const {
    Case other = *this;
    for (Tensor* t : {&other.x, &other.residual, &other.dy, &other.dsum, &other.weight})
      *t = t->detach().to(type);
    if (bias) other.bias = bias->detach().to(type);
    return other;
  }
  Tensor x, residual, dy, dsum, weight;
  std::optional<Tensor> bias;
};

/// y, sum, dx, dresidual, dweight and, where there is one, dbias.
template <class Body>
std::vector<Tensor> run(Case c, const Body& body) {
  std::vector<Tensor> inputs = {c.x, c.residual, c.weight};
  if (c.bias) inputs.push_back(*c.bias);
  for (Tensor& input : inputs) input = input.detach().clone().requires_grad_();
  const auto [y, sum] =
      body(inputs[0], inputs[1], inputs[2], c.bias ? std::optional(inputs[3]) : std::nullopt);
  std::vector<Tensor> results = {y.detach(), sum.detach()};
  for (const Tensor& g : torch::autograd::grad({y, sum}, inputs, {c.dy, c.dsum}))
    results.push_back(g);
  return results;
}

std::vector<Tensor> run_operator(const Case& c) {
  return run(c, [](const auto&... given) { return add_layer_norm(given..., 1e-5); });
}
std::vector<Tensor> run_eager(const Case& c) {
  return run(c, [](const Tensor& x, const Tensor& residual, const Tensor& weight,
                   const std::optional<Tensor>& bias) {
    const Tensor sum = x + residual;
    return std::pair(at::layer_norm(sum, weight.sizes(), weight, bias, 1e-5), sum);
  });
}

double error(const Tensor& actual, const Tensor& exact) {
  return (actual.to(at::kDouble) - exact).abs().max().item<double>();
}

TEST(AddLayerNormOperator, IsAsGoodAsEagerOnEveryPathAndType) {
  const std::pair<at::ScalarType, kernels::Type> types[] = {
      {at::kFloat, kernels::Type::kFloat32},
      {at::kDouble, kernels::Type::kFloat64},
      {at::kBFloat16, kernels::Type::kBFloat16},
      {at::kHalf, kernels::Type::kFloat16}};
  for (const char* backend : {"auto", "composite"})
    for (const auto& [type, kernel_type] : types)
      for (const bool with_bias : {true, false}) {
        const BackendScope scope(backend);
        const Case c(type, with_bias);
        const auto actual = run_operator(c), eager = run_eager(c);
        const auto exact = run_eager(c.to(at::kDouble));
        ASSERT_EQ(actual.size(), exact.size());
        for (std::size_t n = 0; n < exact.size(); ++n) {
          EXPECT_EQ(actual[n].scalar_type(), type);
          const double tolerance = xsa::testing::beside_eager(
              error(eager[n], exact[n]), exact[n].abs().max().item<double>(), 1, kernel_type);
          EXPECT_TRUE(is_near(values(actual[n]), values(exact[n]), tolerance))
              << backend << ' ' << type << " output " << n;
        }
      }
}

TEST(AddLayerNormOperator, TakesFloat32ParametersWith16BitRows) {
  Case c(at::kBFloat16);
  c.weight = c.weight.to(at::kFloat), c.bias = c.bias->to(at::kFloat);
  const auto results = run_operator(c);
  EXPECT_EQ(results[0].scalar_type(), at::kBFloat16);
  EXPECT_EQ(results[4].scalar_type(), at::kFloat);
  EXPECT_EQ(results[5].scalar_type(), at::kFloat);
}

TEST(AddLayerNormOperator, TakesAnyStrides) {
  const Case c(at::kFloat);
  Case strided = c;
  strided.x = c.x.permute({2, 1, 0}).contiguous().permute({2, 1, 0});
  strided.dy = c.dy.select(0, 1).expand_as(c.dy);
  Case dense = c;
  dense.dy = strided.dy.contiguous();
  const auto actual = run_operator(strided), expected = run_operator(dense);
  for (std::size_t n = 0; n < expected.size(); ++n)
    EXPECT_TRUE(at::equal(actual[n], expected[n])) << n;
}

TEST(AddLayerNormOperator, GivesGradientsWhereOnlyOneOutputIsUsed) {
  const Case c(at::kFloat);
  const Tensor x = c.x.clone().requires_grad_(), weight = c.weight.clone().requires_grad_();
  const auto [y, sum] = add_layer_norm(x, c.residual, weight, c.bias);
  const auto of_sum = torch::autograd::grad({sum}, {x, weight}, {c.dsum}, true, false, true);
  EXPECT_TRUE(at::equal(of_sum[0], c.dsum));
  EXPECT_FALSE(of_sum[1].defined());
  const auto of_y = torch::autograd::grad({y}, {x}, {c.dy}, true);
  const auto of_both = torch::autograd::grad({y, sum}, {x}, {c.dy, c.dsum});
  EXPECT_TRUE(at::allclose(of_y[0] + of_sum[0], of_both[0], 1e-5, 1e-6));
}

TEST(AddLayerNormOperator, ASecondDerivativeIsRefusedWhereItIsAskedFor) {
  const Case c(at::kFloat);
  const Tensor x = c.x.clone().requires_grad_();
  const auto [y, sum] = add_layer_norm(x, c.residual, c.weight, c.bias);
  const auto dx = torch::autograd::grad({y}, {x}, {c.dy}, true, true);
  EXPECT_THROW(torch::autograd::grad({dx[0].sum()}, {x}), c10::Error);
}

TEST(AddLayerNormOperator, RefusesWithAReason) {
  const Case c(at::kFloat);
  const auto message = [](const auto& body) -> std::string {
    try {
      body();
    } catch (const c10::Error& refused) {
      return refused.what_without_backtrace();
    }
    return "no error";
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(message([&] { add_layer_norm(c.x, c.residual[0], c.weight, c.bias); }),
              HasSubstr("residual: expected sizes, type and device of x, [3, 5, 37]"));
  EXPECT_THAT(message([&] { add_layer_norm(c.x, c.residual.to(at::kHalf), c.weight, c.bias); }),
              HasSubstr("residual: expected sizes, type"));
  EXPECT_THAT(message([&] { add_layer_norm(c.x, c.residual, c.weight.narrow(0, 0, 3), c.bias); }),
              HasSubstr("weight: expected C = 37 elements"));
  EXPECT_THAT(message([&] { add_layer_norm(c.x, c.residual, c.weight, c.x); }),
              HasSubstr("bias: expected floating-point [C]"));
  EXPECT_THAT(message([&] { add_layer_norm(c.x, c.residual, c.weight, c.bias, 0); }),
              HasSubstr("eps: expected a finite number above 0, got 0"));
  EXPECT_THAT(
      message([&] { add_layer_norm(c.x.to(at::kInt), c.residual.to(at::kInt), c.weight, c.bias); }),
      HasSubstr("x: expected float32"));
}

TEST(AddLayerNormOperator, TakesNoRows) {
  for (const char* backend : {"auto", "composite"}) {
    const BackendScope scope(backend);
    Case c(at::kFloat);
    for (Tensor* t : {&c.x, &c.residual, &c.dy, &c.dsum}) *t = t->narrow(1, 0, 0);
    const auto results = run_operator(c);
    EXPECT_EQ(results[0].numel(), 0);
    EXPECT_TRUE(at::equal(results[4], at::zeros({37})));
  }
}

}  // namespace
}  // namespace xsa::op::testing
