// Rotary positions against the double reference, on every instruction set that this machine has.
#include "xsa/kernels/rope.h"

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
using testing::Layout;
using testing::same_bits;

struct Turn {
  Turn(std::array<std::int64_t, 4> sizes, Type type, Layout layout)
      : x(type, sizes, layout), y(type, sizes, layout) {
    Rng rng(3);
    x.for_each([&](auto... at) { x.set(at..., rng.normal()); });
    const std::int64_t half = sizes[3] / 2;
    for (std::int64_t n = 0; n < sizes[2] * half; ++n) {
      const double angle = 6 * rng.uniform();
      cos.push_back(static_cast<float>(std::cos(angle)));
      sin.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  RotaryParams params() {
    RotaryParams p;
    p.batch = x.sizes[0], p.heads = x.sizes[1], p.tokens = x.sizes[2], p.head_dim = x.sizes[3];
    p.type = x.type;
    p.x = x.view(), p.y = y.mutable_view();
    p.cos = cos.data(), p.sin = sin.data();
    return p;
  }
  double tolerance() const {
    double largest = 0;
    for (const double value : x.values()) largest = std::max(largest, std::abs(value));
    return testing::rotary_tolerance(largest, x.type);
  }
  Array x, y;
  std::vector<float> cos, sin;
};

class Rotary : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Rotary, ::testing::ValuesIn(instruction_sets()),
                         [](const auto& each) { return each.param; });

TEST_P(Rotary, EqualsTheReferenceForEveryTypeLayoutAndDimension) {
  for (const Type type : {Type::kFloat32, Type::kBFloat16, Type::kFloat16})
    for (const Layout layout : {Layout::kDense, Layout::kTokenMajor, Layout::kPadded})
      for (const std::int64_t dim : {2, 6, 16, 30, 32, 34, 64, 128, 256, 514}) {
        SCOPED_TRACE(testing::describe({.head_dim = dim, .type = type, .layout = layout}));
        Turn turn({2, 3, 5, dim}, type, layout);
        RotaryParams params = turn.params();
        for (const bool inverse : {false, true}) {
          params.inverse = inverse;
          rotary_embedding(params);
          EXPECT_TRUE(
              is_near(turn.y.values(), reference_rotary_embedding(params), turn.tolerance()));
          EXPECT_TRUE(turn.y.gaps_untouched());
        }
      }
}

TEST_P(Rotary, InPlaceGivesTheSameBits) {
  Turn turn({2, 3, 9, 44}, Type::kFloat32, Layout::kTokenMajor);
  RotaryParams params = turn.params();
  rotary_embedding(params);
  params.y = turn.x.mutable_view();
  rotary_embedding(params);
  EXPECT_TRUE(same_bits(turn.x.values(), turn.y.values()));
}

TEST_P(Rotary, TurningBackGivesTheInput) {
  Turn turn({1, 2, 7, 32}, Type::kFloat32, Layout::kDense);
  RotaryParams params = turn.params();
  const std::vector<double> before = turn.x.values();
  rotary_embedding(params);
  params.x = turn.y.view(), params.inverse = true;
  rotary_embedding(params);
  // Two turns; the tables' own rounding makes cos^2 + sin^2 differ from 1 by at most 2 u sqrt(2).
  const double table = 3 * testing::unit_roundoff(Type::kFloat32) * 5;
  EXPECT_TRUE(is_near(turn.y.values(), before, 3 * turn.tolerance() + table));
}

TEST_P(Rotary, DoesNotDependOnTheNumberOfWorkers) {
  Turn turn({3, 4, 211, 64}, Type::kFloat32, Layout::kTokenMajor);
  RotaryParams params = turn.params();
  rotary_embedding(params);
  const std::vector<double> alone = turn.y.values();
  const Parallel three = threads(3);
  params.parallel = &three;
  rotary_embedding(params);
  EXPECT_TRUE(same_bits(turn.y.values(), alone));
}

TEST_P(Rotary, RoundsWithoutBias) {
  for (const Type type : {Type::kBFloat16, Type::kFloat16}) {
    Turn turn({4, 8, 64, 64}, type, Layout::kDense);
    RotaryParams params = turn.params();
    rotary_embedding(params);
    const std::vector<double> exact = reference_rotary_embedding(params);
    std::vector<double> size, got;  // magnitudes: a truncation makes them smaller
    for (const double value : exact) size.push_back(std::abs(value));
    for (const double value : turn.y.values()) got.push_back(std::abs(value));
    EXPECT_LT(std::abs(testing::mean_signed_error(got, size)), testing::unit_roundoff(type) / 32);
  }
}

TEST_P(Rotary, DoesNothingWhereThereIsNothing) {
  for (const std::array<std::int64_t, 4>& sizes :
       {std::array<std::int64_t, 4>{0, 2, 3, 8}, {1, 0, 3, 8}, {1, 2, 0, 8}}) {
    Turn turn(sizes, Type::kFloat32, Layout::kDense);
    rotary_embedding(turn.params());
    EXPECT_TRUE(turn.y.values().empty());
  }
}

}  // namespace
}  // namespace xsa::kernels
