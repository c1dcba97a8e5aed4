// The exclusion of the rows of one vector, both directions: the dot products row by row, what they
// give for all rows at once. A rare row that fp32 cannot hold goes to exclude_row.h's double path.
#pragma once

#include "xsa/kernels/cpu/exclude_row.h"
#include "xsa/kernels/cpu/simd.h"

namespace xsa::kernels::cpu {
namespace {

/// Up to kLanes rows: where each one's own value lies (whole vectors of fp32), or null where the
/// row does not see its own key; and each one's strength.
struct OwnRows {
  const float* w[kLanes];
  double strength[kLanes];
};

struct RowSums {
  float with_w[kLanes], ww[kLanes];
  RowSums() {
    for (Index r = 0; r < kLanes; ++r) with_w[r] = 0, ww[r] = 1;
  }
};

/// z in y's place, c into `c`. Rows hold whole vectors. remake(r) makes y's row r anew where it is
/// not finite, if it can.
template <class Remake>
HWY_INLINE void exclude_rows(float* y, Index stride, const OwnRows& own, Index count, Index size,
                             double eps, float* c, const Remake& remake) {
  RowSums sums;
  for (Index r = 0; r < count; ++r) {
    if (!own.w[r]) continue;
    const float* row = y + r * stride;
    Vec yw = hn::Zero(kF), ww = hn::Zero(kF);
    for (Index d = 0; d < size; d += kLanes) {
      const Vec w = hn::LoadU(kF, own.w[r] + d);
      yw = hn::MulAdd(hn::LoadU(kF, row + d), w, yw);
      ww = hn::MulAdd(w, w, ww);
    }
    sums.with_w[r] = hn::GetLane(hn::SumOfLanes(kF, yw));
    sums.ww[r] = hn::GetLane(hn::SumOfLanes(kF, ww));
  }
  double coefficients[kLanes];
  for (Index r = 0; r < kLanes; ++r)
    coefficients[r] = exclusion_coefficient(sums.with_w[r], sums.ww[r], eps);
  for (Index r = 0; r < count; ++r) {
    c[r] = static_cast<float>(coefficients[r]);
    float* row = y + r * stride;
    if (!own.w[r]) {
      if (!all_finite(row, stride, 1, size)) remake(r);
      continue;
    }
    const float ac = static_cast<float>(own.strength[r] * coefficients[r]);
    if (!are_ordinary_sums(sums.with_w[r], sums.ww[r], [&] { return is_zero(row, size); }) ||
        !is_ordinary_factor(ac)) {
      if (!all_finite(row, stride, 1, size)) remake(r);
      c[r] = exclude_row(row, own.w[r], size, own.strength[r], eps);
      continue;
    }
    if (own.strength[r] == 0) continue;
    const Vec factor = hn::Set(kF, ac);
    for (Index d = 0; d < size; d += kLanes)
      hn::StoreU(hn::NegMulAdd(factor, hn::LoadU(kF, own.w[r] + d), hn::LoadU(kF, row + d)), kF,
                 row + d);
  }
}

/// What one row's backward reads and writes. dw may be null where it is nobody's.
struct GradientRow {
  const float *z, *dz;
  float *dy, *dw;
};

/// dy of up to kLanes rows, the direct part added to dw, y . dy into y_dy, the strength's gradient
/// into da. Where own.w is null, dy = dz. `c` is the forward's. Rows hold whole vectors.
///
/// y . dy equals z . dz (M 3), but for the rounding of dy, which every dy . v sees too: where
/// values have much in common, what the two share has to cancel. y is z + a c w. Where z was stored
/// in 16 bits, `z_is_rounded`, that rounding is the larger one, and z . dz has less of it.
HWY_INLINE void exclude_rows_backward(const GradientRow* rows, const OwnRows& own, const float* c,
                                      Index count, Index size, double eps, bool z_is_rounded,
                                      float* y_dy, float* da) {
  RowSums sums;
  for (Index r = 0; r < count; ++r) {
    const float* dz = rows[r].dz;
    if (!own.w[r]) continue;
    Vec g = hn::Zero(kF), ww = hn::Zero(kF);
    for (Index d = 0; d < size; d += kLanes) {
      const Vec w = hn::LoadU(kF, own.w[r] + d);
      g = hn::MulAdd(hn::LoadU(kF, dz + d), w, g);
      ww = hn::MulAdd(w, w, ww);
    }
    sums.with_w[r] = hn::GetLane(hn::SumOfLanes(kF, g));
    sums.ww[r] = hn::GetLane(hn::SumOfLanes(kF, ww));
  }

  GradientFactors factors[kLanes];
  for (Index r = 0; r < count; ++r) {
    const ExclusionGradient gradient =
        exclusion_gradient(own.strength[r], c[r], sums.with_w[r], sums.ww[r], eps);
    factors[r] = GradientFactors(gradient);
    da[r] = static_cast<float>(gradient.dstrength);
  }
  for (Index r = 0; r < count; ++r) {
    const float* w = own.w[r];
    const GradientRow& row = rows[r];
    if (!w) {
      da[r] = 0;
      for (Index d = 0; d < size; d += kLanes)
        hn::StoreU(hn::LoadU(kF, row.dz + d), kF, row.dy + d);
      y_dy[r] = dot(row.z, row.dz, size);
      continue;
    }
    if (!are_ordinary_sums(sums.with_w[r], sums.ww[r], [&] { return is_zero(row.dz, size); }) ||
        !factors[r].are_ordinary()) {
      float nobodys[kLargestDim];
      for (Index d = 0; d < size; ++d) row.dy[d] = row.dz[d], nobodys[d] = 0;
      da[r] = exclude_row_backward(row.dy, row.z, w, size, own.strength[r], c[r], eps,
                                   row.dw ? row.dw : nobodys);
      double sum = 0;
      for (Index d = 0; d < size; ++d)
        sum += (row.z[d] + own.strength[r] * c[r] * w[d]) * static_cast<double>(row.dy[d]);
      y_dy[r] = z_is_rounded ? dot(row.z, row.dz, size) : static_cast<float>(sum);
      continue;
    }
    const Vec dy_w = hn::Set(kF, factors[r].dy_w), minus_ac = hn::Set(kF, factors[r].dw_dz);
    Vec sum = hn::Zero(kF);
    const auto make_dy = [&](Index d, Vec from_z, Vec from_dz, Vec from_w) {
      const Vec dy = hn::NegMulAdd(dy_w, from_w, from_dz);
      hn::StoreU(dy, kF, row.dy + d);
      sum = hn::MulAdd(hn::NegMulAdd(minus_ac, from_w, from_z), dy, sum);
    };
    for (Index d = 0; d < size; d += kLanes) {
      const Vec from_z = hn::LoadU(kF, row.z + d), from_dz = hn::LoadU(kF, row.dz + d);
      const Vec from_w = hn::LoadU(kF, w + d);
      if (row.dw) {
        const Vec dw = hn::LoadU(kF, row.dw + d);
        hn::StoreU(add_to_dw(factors[r], dw, from_dz, from_z, from_w), kF, row.dw + d);
      }
      make_dy(d, from_z, from_dz, from_w);
    }
    y_dy[r] = z_is_rounded ? dot(row.z, row.dz, size) : hn::GetLane(hn::SumOfLanes(kF, sum));
  }
}

}  // namespace
}  // namespace xsa::kernels::cpu
