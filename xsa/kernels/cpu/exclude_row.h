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

/// Whether fp32 can hold a row's sums x . w and w . w: beyond these bounds it overflows or loses
/// bits, and the rare row is done in double (M 7). False too where x or w is not finite.
HWY_INLINE bool is_ordinary(float with_w, float ww) {
  return ww > 1e-30f && ww < 1e37f && std::fabs(with_w) < 1e37f;
}

/// z and c of one row, from y in place. `w` is padded like y.
HWY_INLINE float exclude_row(float* y, const float* w, Index size, double strength, double eps) {
  const float yw = dot(y, w, padded(size)), ww = dot(w, w, padded(size));
  if (is_ordinary(yw, ww)) {
    const float c = static_cast<float>(exclusion_coefficient(yw, ww, eps));
    if (strength == 0) return c;
    const Vec ac = hn::Set(kF, static_cast<float>(strength) * c);
    for (Index d = 0; d < size; d += kLanes)
      hn::StoreU(hn::NegMulAdd(ac, hn::LoadU(kF, w + d), hn::LoadU(kF, y + d)), kF, y + d);
    return c;
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
  if (is_ordinary(g, ww)) {
    const ExclusionGradient gradient = exclusion_gradient(a, c, g, ww, eps);
    const Vec dy_w = hn::Set(kF, static_cast<float>(gradient.dy_w));
    const Vec dw_dz = hn::Set(kF, static_cast<float>(gradient.dw_dz));
    const Vec dw_z = hn::Set(kF, static_cast<float>(gradient.dw_z));
    const Vec dw_w = hn::Set(kF, static_cast<float>(gradient.dw_w));
    for (Index d = 0; d < size; d += kLanes) {
      const Vec from_dz = hn::LoadU(kF, dz + d), from_w = hn::LoadU(kF, w + d);
      Vec sum = hn::MulAdd(dw_dz, from_dz, hn::LoadU(kF, dw + d));
      sum = hn::MulAdd(dw_z, hn::LoadU(kF, z + d), sum);
      hn::StoreU(hn::MulAdd(dw_w, from_w, sum), kF, dw + d);
      hn::StoreU(hn::NegMulAdd(dy_w, from_w, from_dz), kF, dz + d);
    }
    return static_cast<float>(gradient.dstrength);
  }
  const ExclusionGradient gradient =
      exclusion_gradient(a, c, dot_double(dz, w, size), dot_double(w, w, size), eps);
  for (Index d = 0; d < size; ++d) {
    dw[d] +=
        static_cast<float>(gradient.dw_dz * dz[d] + gradient.dw_z * z[d] + gradient.dw_w * w[d]);
    dz[d] = static_cast<float>(dz[d] - gradient.dy_w * w[d]);
  }
  return static_cast<float>(gradient.dstrength);
}

}  // namespace
}  // namespace xsa::kernels::cpu
