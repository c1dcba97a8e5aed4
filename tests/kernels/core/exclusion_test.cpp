#include "xsa/kernels/core/exclusion.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace xsa::kernels {
namespace {

using Row = std::array<double, 3>;

double dot(const Row& a, const Row& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

Row z_of(const Row& y, const Row& w, double a, double eps) {
  const double c = exclusion_coefficient(dot(y, w), dot(w, w), eps);
  return {exclude(y[0], a * c, w[0]), exclude(y[1], a * c, w[1]), exclude(y[2], a * c, w[2])};
}

const Row kY{0.3, -1.2, 0.7}, kW{1.1, 0.4, -0.5}, kDz{-0.6, 0.2, 1.3};

TEST(ExclusionForward, LeavesNothingAlongV) {
  EXPECT_NEAR(dot(z_of(kY, kW, 1, 1e-12), kW), 0, 1e-15);
}

TEST(ExclusionForward, StrengthTwoReflects) {
  EXPECT_NEAR(dot(z_of(kY, kW, 2, 1e-12), kW), -dot(kY, kW), 1e-15);
}

TEST(ExclusionForward, AZeroValueExcludesNothing) {
  for (const double eps : {1e-12, 0.0}) EXPECT_EQ(z_of(kY, {0, 0, 0}, 1, eps), kY);
}

TEST(ExclusionForward, EpsBoundsTheNormAsNormalizeDoes) {
  EXPECT_EQ(own_norm(1e-26, 1e-12), 1e-24);
  EXPECT_EQ(own_norm(4.0, 1e-12), 4.0);
  EXPECT_TRUE(std::isnan(own_norm(NAN, 1e-12)));
}

/// M 1 and M 2: exclusion_gradient against central differences of z(y, w, a) . dz.
TEST(ExclusionBackward, IsTheDerivativeOfTheForward) {
  for (const double a : {1.0, 0.4, -2.0})
    for (const double eps : {1e-12, 10.0}) {  // 10: eps decides the norm
      const auto loss = [&](const Row& y, const Row& w, double strength) {
        return dot(z_of(y, w, strength, eps), kDz);
      };
      const double ww = dot(kW, kW), c = exclusion_coefficient(dot(kY, kW), ww, eps);
      const ExclusionGradient gradient = exclusion_gradient(a, c, dot(kDz, kW), ww, eps);
      const Row z = z_of(kY, kW, a, eps);
      const double step = 1e-6;
      EXPECT_NEAR(gradient.dstrength,
                  (loss(kY, kW, a + step) - loss(kY, kW, a - step)) / (2 * step), 1e-9);
      for (int d = 0; d < 3; ++d) {
        Row y_up = kY, y_down = kY, w_up = kW, w_down = kW;
        y_up[d] += step, y_down[d] -= step, w_up[d] += step, w_down[d] -= step;
        EXPECT_NEAR(kDz[d] - gradient.dy_w * kW[d],
                    (loss(y_up, kW, a) - loss(y_down, kW, a)) / (2 * step), 1e-9);
        EXPECT_NEAR(gradient.dw_dz * kDz[d] - gradient.dy_w * (z[d] - gradient.z_w * kW[d]),
                    (loss(kY, w_up, a) - loss(kY, w_down, a)) / (2 * step), 1e-9);
      }
    }
}

/// M 3: what the softmax's backward needs, without y.
TEST(ExclusionBackward, ZDotDzIsYDotDy) {
  for (const double a : {1.0, 0.4, -2.0})
    for (const double eps : {1e-12, 10.0}) {
      const Row z = z_of(kY, kW, a, eps);
      const double dy_w = exclusion_gradient(a, 0, dot(kDz, kW), dot(kW, kW), eps).dy_w;
      EXPECT_NEAR(dot(z, kDz), dot(kY, kDz) - dy_w * dot(kY, kW), 1e-15);
    }
}

}  // namespace
}  // namespace xsa::kernels
