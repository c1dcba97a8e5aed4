// The comparer itself: it must see what `diff > tolerance` does not.
#include "tests/support/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace xsa::testing {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const std::vector<double> kValues{1, -2, 0.5, 3};

std::vector<double> with(std::size_t at, double value) {
  std::vector<double> values = kValues;
  values[at] = value;
  return values;
}

TEST(IsNear, PassesWithinTheTolerance) {
  EXPECT_TRUE(is_near(with(1, -2.001), kValues, 0.0011));
  EXPECT_FALSE(is_near(with(1, -2.001), kValues, 0.0009));
}

TEST(IsNear, FailsForANanWhereANumberIsExpected) {
  EXPECT_FALSE(is_near(with(2, kNan), kValues, 1e9));
  EXPECT_FALSE(is_near(kValues, with(2, kNan), 1e9));
  EXPECT_TRUE(is_near(with(2, kNan), with(2, kNan), 0));
}

TEST(IsNear, FailsForAnInfinityWhereANumberIsExpected) {
  EXPECT_FALSE(is_near(with(0, INFINITY), kValues, INFINITY));
  EXPECT_FALSE(is_near(kValues, with(0, -INFINITY), 1e9));
  EXPECT_FALSE(is_near(with(0, INFINITY), with(0, -INFINITY), 1e9));
  EXPECT_TRUE(is_near(with(0, -INFINITY), with(0, -INFINITY), 0));
}

TEST(IsNear, FailsForOneFlippedSign) { EXPECT_FALSE(is_near(with(3, -3), kValues, 1e-3)); }

TEST(IsNear, FailsForOneWrongNegative) { EXPECT_FALSE(is_near(with(1, -9), kValues, 1e-3)); }

TEST(IsNear, FailsForANanTolerance) { EXPECT_FALSE(is_near(kValues, kValues, kNan)); }

TEST(IsNear, FailsForAMissingValue) { EXPECT_FALSE(is_near({1, -2}, kValues, 1e9)); }

TEST(SameBits, TellsZerosApartAndNansAlike) {
  EXPECT_FALSE(same_bits<float>({0.0f}, {-0.0f}));
  EXPECT_TRUE(same_bits<double>({kNan}, {kNan}));
  EXPECT_FALSE(same_bits<float>({1, 2}, {1}));
}

TEST(MeanSignedError, SeesABiasThatNoSingleValueShows) {
  std::vector<double> exact, truncated, rounded;
  for (int n = 1; n <= 1000; ++n) {
    exact.push_back(1 + n / 1000.0);
    truncated.push_back(std::floor(exact.back() * 128) / 128);
    rounded.push_back(std::nearbyint(exact.back() * 128) / 128);
  }
  EXPECT_LT(mean_signed_error(truncated, exact), -1e-3);
  EXPECT_LT(std::abs(mean_signed_error(rounded, exact)), 1e-4);
}

}  // namespace
}  // namespace xsa::testing
