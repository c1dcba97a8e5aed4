// The linear layer of few rows against the double reference, on every instruction set that this
// machine has.
#include "xsa/kernels/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/cpu/fused.h"
#include "tests/support/compare.h"
#include "tests/support/problem.h"
#include "tests/support/tolerance.h"
#include "xsa/base/error.h"
#include "xsa/base/rng.h"

namespace xsa::kernels {
namespace {

using testing::Array;
using testing::is_near;
using testing::same_bits;

struct Layer {
  Layer(std::int64_t rows, std::int64_t inputs, std::int64_t outputs, Type type = Type::kFloat32)
      : sizes{rows, inputs, outputs}, weight(type, {1, 1, outputs, inputs}) {
    Rng rng(7);
    for (std::int64_t n = 0; n < rows * inputs; ++n) x.push_back(static_cast<float>(rng.normal()));
    weight.for_each([&](auto... at) { weight.set(at..., rng.normal()); });
    for (std::int64_t n = 0; n < outputs; ++n) bias.push_back(static_cast<float>(rng.normal()));
    y.assign(static_cast<std::size_t>(rows * outputs) + 1, -7.0f);
  }
  LinearParams params() {
    LinearParams p;
    p.rows = sizes[0], p.inputs = sizes[1], p.outputs = sizes[2], p.type = weight.type;
    p.x = x.data(), p.weight = weight.view().data, p.bias = bias.data(), p.y = y.data();
    return p;
  }
  std::array<std::int64_t, 3> sizes;
  Array weight;
  std::vector<float> x, bias, y;  // y: one more, which must stay as it is
};

void expect_matches_reference(Layer layer, bool with_bias = true) {
  SCOPED_TRACE(cat("rows ", layer.sizes[0], ", inputs ", layer.sizes[1], ", outputs ",
                   layer.sizes[2], ", type ", static_cast<int>(layer.weight.type)));
  LinearParams params = layer.params();
  if (!with_bias) params.bias = nullptr;
  linear(params);
  EXPECT_EQ(layer.y.back(), -7.0f);
  layer.y.pop_back();
  const double tolerance = testing::linear_tolerance(layer.sizes[1]);
  EXPECT_TRUE(is_near(doubles(layer.y), reference_linear(params), tolerance));
}

class Linear : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Linear, ::testing::ValuesIn(instruction_sets()),
                         [](const auto& each) { return each.param; });

TEST_P(Linear, EqualsTheReferenceForEveryTypeAndNumberOfInputs) {
  for (const Type type : {Type::kFloat32, Type::kBFloat16, Type::kFloat16})
    for (const std::int64_t inputs : {1, 3, 7, 8, 15, 16, 17, 33, 128, 200, 771})
      expect_matches_reference(Layer(3, inputs, 5, type));
}

TEST_P(Linear, EqualsTheReferenceForEveryTile) {
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 13})
    for (const std::int64_t outputs : {1, 2, 3, 4, 5, 7, 8, 9, 15, 23})
      expect_matches_reference(Layer(rows, 37, outputs));
}

TEST_P(Linear, EqualsTheReferenceOverManyTasks) {
  expect_matches_reference(Layer(2, 600, 1000));
  expect_matches_reference(Layer(5, 70000, 19, Type::kBFloat16));
}

TEST_P(Linear, TakesNoBiasAndNoInputs) {
  expect_matches_reference(Layer(3, 20, 9), /*with_bias=*/false);
  expect_matches_reference(Layer(3, 0, 9));
  expect_matches_reference(Layer(0, 20, 9));
  expect_matches_reference(Layer(3, 20, 0));
}

/// Rows one by one, with three workers, against all rows at once.
void expect_same_bits_alone(Layer layer) {
  const auto [rows, inputs, outputs] = layer.sizes;
  linear(layer.params());
  const Parallel three = threads(3);
  LinearParams params = layer.params();
  std::vector<float> alone(static_cast<std::size_t>(outputs));
  params.rows = 1, params.parallel = &three, params.y = alone.data();
  for (std::int64_t row = 0; row < rows; ++row) {
    params.x = layer.x.data() + row * inputs;
    linear(params);
    const auto together = layer.y.begin() + row * outputs;
    EXPECT_TRUE(same_bits(alone, std::vector<float>(together, together + outputs)))
        << "row " << row;
  }
}

TEST_P(Linear, GivesARowTheSameBitsWhateverItsNeighboursAndWorkers) {
  for (const Type type : {Type::kFloat32, Type::kBFloat16})
    expect_same_bits_alone(Layer(11, 300, 700, type));
}

TEST_P(Linear, GivesARowTheSameBitsWhereTheWeightComesFromMemory) {
  for (const Type type : {Type::kFloat32, Type::kBFloat16, Type::kFloat16})
    expect_same_bits_alone(Layer(3, 1037, 1031, type));
  expect_matches_reference(Layer(1, 1037, 1031, Type::kBFloat16));
}

TEST_P(Linear, KeepsANanToItsRow) {
  Layer layer(6, 40, 10);
  layer.x[2 * 40 + 5] = NAN;
  linear(layer.params());
  for (std::size_t row = 0; row < 6; ++row)
    for (std::size_t output = 0; output < 10; ++output)
      EXPECT_EQ(std::isnan(layer.y[row * 10 + output]), row == 2);
}

}  // namespace
}  // namespace xsa::kernels
