#include "xsa/kernels/core/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

namespace xsa::kernels {
namespace {

template <class Real>
Real polynomial(Real f) {
  Real p = kExp2[0];
  for (int n = 1; n < 6; ++n) p = p * f + static_cast<Real>(kExp2[n]);
  return p;
}

/// M 5. Relative to 2^f >= 2^(-1/2), coefficients rounded to fp32 add up to sqrt(2) 1.3 2^-24 to
/// the polynomial's own 7.5e-8 (1.3: 1 + 1/2 1/2 + ...), and the last two fp32 operations as much
/// again.
TEST(Exp2, IsTheMinimaxPolynomial) {
  double worst = 0, worst_fp32 = 0;
  for (int n = -5000; n <= 5000; ++n) {
    const double f = n / 10000.0, exact = std::exp2(f);
    worst = std::max(worst, std::abs(polynomial(f) / exact - 1));
    const float f32 = static_cast<float>(f);
    worst_fp32 =
        std::max(worst_fp32, std::abs(polynomial(f32) / std::exp2(static_cast<double>(f32)) - 1));
  }
  const double rounding = std::sqrt(2) * 1.3 * std::ldexp(1.0, -24);
  EXPECT_LT(worst, 7.5e-8 + rounding);
  EXPECT_LT(worst_fp32, 7.5e-8 + 2 * rounding);
}

TEST(LogSumExp, IsTheLogarithmOfAllWeights) {
  EXPECT_NEAR(log_sum_exp(SoftmaxState<double>{3, 1.5}), std::log(std::exp(3) * 1.5), 1e-15);
  EXPECT_EQ(log_sum_exp(SoftmaxState<float>{-INFINITY, 0}), -INFINITY);
  EXPECT_TRUE(std::isnan(log_sum_exp(SoftmaxState<float>{0, NAN})));
}

}  // namespace
}  // namespace xsa::kernels
