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

/// Lane r is set unless row r needs double (exclude_row.h).
HWY_INLINE bool is_ordinary(const RowSums& sums, Index r) {
  return sums.ww[r] > 1e-30f && sums.ww[r] < 1e37f && std::fabs(sums.with_w[r]) < 1e37f;
}

/// z in y's place, c into `c`. Rows hold whole vectors.
HWY_INLINE void exclude_rows(float* y, Index stride, const OwnRows& own, Index count, Index size,
                             double eps, float* c) {
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
    if (!own.w[r]) continue;
    float* row = y + r * stride;
    if (!is_ordinary(sums, r)) {
      c[r] = exclude_row(row, own.w[r], size, own.strength[r], eps);
      continue;
    }
    if (own.strength[r] == 0) continue;
    const Vec factor = hn::Set(kF, static_cast<float>(own.strength[r] * coefficients[r]));
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

/// dy of up to kLanes rows, the direct part added to dw, z . dz into z_dz, the strength's gradient
/// into da. Where own.w is null, dy = dz. `c` is the forward's. Rows hold whole vectors.
HWY_INLINE void exclude_rows_backward(const GradientRow* rows, const OwnRows& own, const float* c,
                                      Index count, Index size, double eps, float* z_dz, float* da) {
  RowSums sums;
  for (Index r = 0; r < count; ++r) {
    const float *z = rows[r].z, *dz = rows[r].dz;
    Vec delta = hn::Zero(kF), g = hn::Zero(kF), ww = hn::Zero(kF);
    if (!own.w[r]) {
      for (Index d = 0; d < size; d += kLanes) {
        const Vec from_dz = hn::LoadU(kF, dz + d);
        delta = hn::MulAdd(hn::LoadU(kF, z + d), from_dz, delta);
        hn::StoreU(from_dz, kF, rows[r].dy + d);
      }
    } else {
      for (Index d = 0; d < size; d += kLanes) {
        const Vec from_dz = hn::LoadU(kF, dz + d), w = hn::LoadU(kF, own.w[r] + d);
        delta = hn::MulAdd(hn::LoadU(kF, z + d), from_dz, delta);
        g = hn::MulAdd(from_dz, w, g);
        ww = hn::MulAdd(w, w, ww);
      }
      sums.with_w[r] = hn::GetLane(hn::SumOfLanes(kF, g));
      sums.ww[r] = hn::GetLane(hn::SumOfLanes(kF, ww));
    }
    z_dz[r] = hn::GetLane(hn::SumOfLanes(kF, delta));
  }

  ExclusionGradient gradients[kLanes];
  for (Index r = 0; r < count; ++r)
    gradients[r] = exclusion_gradient(own.strength[r], c[r], sums.with_w[r], sums.ww[r], eps);
  for (Index r = 0; r < count; ++r) {
    da[r] = 0;
    const float* w = own.w[r];
    if (!w) continue;
    const ExclusionGradient& gradient = gradients[r];
    da[r] = static_cast<float>(gradient.dstrength);
    const GradientRow& row = rows[r];
    if (!is_ordinary(sums, r)) {
      float nobodys[kLargestDim];
      for (Index d = 0; d < size; ++d) row.dy[d] = row.dz[d], nobodys[d] = 0;
      da[r] = exclude_row_backward(row.dy, row.z, w, size, own.strength[r], c[r], eps,
                                   row.dw ? row.dw : nobodys);
      continue;
    }
    const Vec dy_w = hn::Set(kF, static_cast<float>(gradient.dy_w));
    if (!row.dw) {
      for (Index d = 0; d < size; d += kLanes)
        hn::StoreU(hn::NegMulAdd(dy_w, hn::LoadU(kF, w + d), hn::LoadU(kF, row.dz + d)), kF,
                   row.dy + d);
      continue;
    }
    const Vec dw_dz = hn::Set(kF, static_cast<float>(gradient.dw_dz));
    const Vec dw_z = hn::Set(kF, static_cast<float>(gradient.dw_z));
    const Vec dw_w = hn::Set(kF, static_cast<float>(gradient.dw_w));
    for (Index d = 0; d < size; d += kLanes) {
      const Vec from_dz = hn::LoadU(kF, row.dz + d), from_w = hn::LoadU(kF, w + d);
      Vec sum = hn::MulAdd(dw_dz, from_dz, hn::LoadU(kF, row.dw + d));
      sum = hn::MulAdd(dw_z, hn::LoadU(kF, row.z + d), sum);
      hn::StoreU(hn::MulAdd(dw_w, from_w, sum), kF, row.dw + d);
      hn::StoreU(hn::NegMulAdd(dy_w, from_w, from_dz), kF, row.dy + d);
    }
  }
}

}  // namespace
}  // namespace xsa::kernels::cpu
