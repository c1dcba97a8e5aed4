// Residual sum and LayerNorm against the double reference, on every instruction set that this
// machine has.
#include "xsa/kernels/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cpu/fused.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/tolerance.h"
#include "xsa/base/rng.h"

namespace xsa::kernels {
namespace {

using testing::Array;
using testing::is_near;
using testing::same_bits;

double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

struct Norm {
  Norm(std::int64_t rows, std::int64_t width, Type type = Type::kFloat32, double shift = 0)
      : sizes{1, 1, rows, width} {
    Rng rng(4);
    for (Array* array : {&x, &residual, &dy, &dsum}) {
      *array = Array(type, sizes);
      array->for_each([&](auto... at) { array->set(at..., rng.normal()); });
    }
    x.for_each([&](auto... at) { x.set(at..., x.get(at...) + shift); });
    for (Array* array : {&sum, &y, &dx}) *array = Array(type, sizes);
    for (std::int64_t c = 0; c < width; ++c) {
      weight.push_back(static_cast<float>(1 + 0.3 * rng.normal()));
      bias.push_back(static_cast<float>(0.3 * rng.normal()));
    }
    mean.resize(static_cast<std::size_t>(rows)), rstd.resize(mean.size());
    dweight.assign(weight.size(), NAN), dbias.assign(weight.size(), NAN);
  }
  AddLayerNormParams params() {
    AddLayerNormParams p;
    p.rows = sizes[2], p.width = sizes[3], p.type = x.type;
    p.x = x.view().data, p.residual = residual.view().data;
    p.weight = weight.data(), p.bias = bias.data();
    p.sum = sum.mutable_view().data, p.y = y.mutable_view().data;
    p.mean = mean.data(), p.rstd = rstd.data();
    p.dy = dy.view().data, p.dsum = dsum.view().data, p.dx = dx.mutable_view().data;
    p.dweight = dweight.data(), p.dbias = dbias.data();
    return p;
  }
  std::array<std::int64_t, 4> sizes;
  Array x, residual, dy, dsum, sum, y, dx;
  std::vector<float> weight, bias, mean, rstd, dweight, dbias;
};

class AddLayerNorm : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, AddLayerNorm, ::testing::ValuesIn(instruction_sets()),
                         [](const auto& each) { return each.param; });

void expect_matches_reference(Norm& norm, const AddLayerNormParams& params) {
  SCOPED_TRACE(testing::describe(
      {.queries = norm.sizes[2], .head_dim = norm.sizes[3], .type = norm.x.type}));
  add_layer_norm_forward(params);
  add_layer_norm_backward(params);
  const ReferenceAddLayerNorm out = reference_add_layer_norm(params);
  const ReferenceAddLayerNormBackward gradients = reference_add_layer_norm_backward(params);
  std::vector<double> normed;
  for (std::size_t n = 0; n < out.sum.size(); ++n) {
    const std::size_t row = n / static_cast<std::size_t>(params.width);
    normed.push_back((out.sum[n] - out.mean[row]) * out.rstd[row]);
  }
  const testing::LayerNormTolerances tolerance = testing::layer_norm_tolerances(
      {params.rows, params.width, largest(out.sum), largest(normed), largest(doubles(norm.weight)),
       largest(out.rstd), largest(norm.dy.values()), largest(norm.dsum.values())},
      params.type);
  const double sum = testing::unit_roundoff(params.type) * largest(out.sum);
  EXPECT_TRUE(is_near(norm.sum.values(), out.sum, sum)) << "sum";
  EXPECT_TRUE(is_near(norm.y.values(), out.y, tolerance.y)) << "y";
  EXPECT_TRUE(is_near(norm.dx.values(), gradients.dx, tolerance.dx)) << "dx";
  EXPECT_TRUE(is_near(doubles(norm.dweight), gradients.dweight, tolerance.dparameter)) << "dw";
  EXPECT_TRUE(is_near(doubles(norm.dbias), gradients.dbias, tolerance.dparameter)) << "db";
}

TEST_P(AddLayerNorm, EqualsTheReferenceForEveryTypeAndWidth) {
  for (const Type type : {Type::kFloat32, Type::kBFloat16, Type::kFloat16})
    for (const std::int64_t width : {2, 3, 7, 8, 15, 16, 17, 33, 128, 200, 771}) {
      Norm norm(5, width, type);
      expect_matches_reference(norm, norm.params());
    }
}

TEST_P(AddLayerNorm, EqualsTheReferenceAroundEveryTaskSize) {
  for (const std::int64_t rows : {1, 63, 64, 65, 200}) {
    Norm norm(rows, 24);
    expect_matches_reference(norm, norm.params());
  }
}

TEST_P(AddLayerNorm, TakesNoBiasAndNoGradientOfTheSum) {
  Norm norm(9, 40);
  AddLayerNormParams params = norm.params();
  params.bias = nullptr, params.dsum = nullptr;
  expect_matches_reference(norm, params);
}

TEST_P(AddLayerNorm, KeepsItsDigitsWhereTheMeanIsFarFromZero) {
  Norm norm(4, 128, Type::kFloat32, 1000);  // var = mean(s^2) - mean(s)^2 would lose them
  expect_matches_reference(norm, norm.params());
}

TEST_P(AddLayerNorm, DoesNotDependOnTheNumberOfWorkers) {
  Norm alone(333, 48), together(333, 48);
  const Parallel three = threads(3);
  AddLayerNormParams params = together.params();
  params.parallel = &three;
  for (const AddLayerNormParams& p : {alone.params(), params})
    add_layer_norm_forward(p), add_layer_norm_backward(p);
  EXPECT_TRUE(same_bits(together.y.values(), alone.y.values()));
  EXPECT_TRUE(same_bits(together.dx.values(), alone.dx.values()));
  EXPECT_TRUE(same_bits(together.dweight, alone.dweight));
  EXPECT_TRUE(same_bits(together.dbias, alone.dbias));
}

TEST_P(AddLayerNorm, HasZeroGradientsWithoutRows) {
  Norm norm(0, 16);
  add_layer_norm_forward(norm.params());
  add_layer_norm_backward(norm.params());
  EXPECT_EQ(norm.dweight, std::vector<float>(16, 0.0f));
  EXPECT_EQ(norm.dbias, std::vector<float>(16, 0.0f));
}

}  // namespace
}  // namespace xsa::kernels
