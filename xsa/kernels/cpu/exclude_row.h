// The exclusion of one row in fp32, both directions: core/exclusion.h with its dot products and
// loops over the value dimension.
//
// FLOPs: 6 Dv a row forward, 12 Dv backward.
#pragma once

#include <cmath>

#include "xsa/kernels/core/exclusion.h"
#include "xsa/kernels/cpu/simd.h"

namespace xsa::kernels::cpu {
namespace {

// A row is ordinary where fp32 can hold its sums x . w and w . w, and the factors that it
// multiplies vectors with: beyond these bounds fp32 overflows or loses bits, and the rare row is
// done in double (M 7). A row that is not finite is not ordinary.

/// x_is_zero() says whether x is 0; else x . w is 0 only where fp32 lost it, or by chance.
template <class IsZero>
HWY_INLINE bool are_ordinary_sums(float with_w, float ww, const IsZero& x_is_zero) {
  const float size = std::fabs(with_w);
  return ww > 1e-30f && ww < 1e37f && size < 1e37f && (size > 1e-30f || (size == 0 && x_is_zero()));
}

/// What multiplies w, whose elements are below 4e18 in an ordinary row, or another vector of the
/// row: x - factor w is no NaN where x is finite.
HWY_INLINE bool is_ordinary_factor(float factor) {
  const float size = std::fabs(factor);
  return (size > 1e-37f && size < 1e18f) || size == 0;
}

/// The factors of a row's gradients in fp32 (core/exclusion.h).
struct GradientFactors {
  float dy_w, dw_dz, z_w;
  HWY_INLINE GradientFactors() = default;
  HWY_INLINE explicit GradientFactors(const ExclusionGradient& gradient)
      : dy_w(static_cast<float>(gradient.dy_w)),
        dw_dz(static_cast<float>(gradient.dw_dz)),
        z_w(static_cast<float>(gradient.z_w)) {}
  HWY_INLINE bool are_ordinary() const {
    return is_ordinary_factor(dy_w) && is_ordinary_factor(dw_dz) && is_ordinary_factor(z_w);
  }
};

/// dw after one row, from dw before.
HWY_INLINE Vec add_to_dw(const GradientFactors& factors, Vec dw, Vec dz, Vec z, Vec w) {
  const Vec mirrored = hn::NegMulAdd(hn::Set(kF, factors.z_w), w, z);
  const Vec sum = hn::MulAdd(hn::Set(kF, factors.dw_dz), dz, dw);
  return hn::NegMulAdd(hn::Set(kF, factors.dy_w), mirrored, sum);
}

inline bool is_zero(const float* x, Index size) {
  for (Index d = 0; d < size; ++d)
    if (x[d] != 0) return false;
  return true;
}

/// z and c of one row, from y in place. `w` is padded like y.
HWY_INLINE float exclude_row(float* y, const float* w, Index size, double strength, double eps) {
  const float yw = dot(y, w, padded(size)), ww = dot(w, w, padded(size));
  const float c32 = static_cast<float>(exclusion_coefficient(yw, ww, eps));
  const float ac = static_cast<float>(strength) * c32;
  if (are_ordinary_sums(yw, ww, [&] { return is_zero(y, size); }) && is_ordinary_factor(ac)) {
    if (strength == 0) return c32;
    const Vec factor = hn::Set(kF, ac);
    for (Index d = 0; d < size; d += kLanes)
      hn::StoreU(hn::NegMulAdd(factor, hn::LoadU(kF, w + d), hn::LoadU(kF, y + d)), kF, y + d);
    return c32;
  }
  const double c = exclusion_coefficient(dot_double(y, w, size), dot_double(w, w, size), eps);
  if (strength != 0)
    for (Index d = 0; d < size; ++d)
      y[d] = static_cast<float>(exclude<double>(y[d], strength * c, w[d]));
  return static_cast<float>(c);
}

/// Turns dz into dy in place and adds the direct part of dw to its row of the sums. Returns da.
HWY_INLINE float exclude_row_backward(float* dz, const float* z, const float* w, Index size,
                                      double a, double c, double eps, float* dw) {
  const float g = dot(dz, w, padded(size)), ww = dot(w, w, padded(size));
  ExclusionGradient gradient = exclusion_gradient(a, c, g, ww, eps);
  const GradientFactors factors(gradient);
  if (are_ordinary_sums(g, ww, [&] { return is_zero(dz, size); }) && factors.are_ordinary()) {
    for (Index d = 0; d < size; d += kLanes) {
      const Vec from_dz = hn::LoadU(kF, dz + d), from_w = hn::LoadU(kF, w + d);
      hn::StoreU(add_to_dw(factors, hn::LoadU(kF, dw + d), from_dz, hn::LoadU(kF, z + d), from_w),
                 kF, dw + d);
      hn::StoreU(hn::NegMulAdd(hn::Set(kF, factors.dy_w), from_w, from_dz), kF, dz + d);
    }
    return static_cast<float>(gradient.dstrength);
  }
  gradient = exclusion_gradient(a, c, dot_double(dz, w, size), dot_double(w, w, size), eps);
  for (Index d = 0; d < size; ++d) {
    dw[d] +=
        static_cast<float>(gradient.dw_dz * dz[d] - gradient.dy_w * (z[d] - gradient.z_w * w[d]));
    dz[d] = static_cast<float>(dz[d] - gradient.dy_w * w[d]);
  }
  return static_cast<float>(gradient.dstrength);
}

}  // namespace
}  // namespace xsa::kernels::cpu
