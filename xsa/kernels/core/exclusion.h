// The paper's idea, both directions (XSA (2), arXiv 2603.09078). A row's attention output y gives
// up what it has along w, the value of the row's own key:
//
//   z = y - a c w,    c = (y . w) / n,    n = max(w . w, eps^2)            a: strength
//
// Everything here is what one row needs apart from its dot products; the caller owns the loops over
// the value dimension. Scalars are double: where a dot product leaves fp32 (|w| > 1.8e19), the
// caller takes it in double, and what comes out is finite.
#pragma once

#include "xsa/kernels/core/host_device.h"

namespace xsa::kernels {

/// n = max(w . w, eps^2): PyTorch's normalize, |w| below eps counts as eps.
XSA_HOST_DEVICE double own_norm(double ww, double eps) { return ww < eps * eps ? eps * eps : ww; }

/// c of the forward. A zero w with eps = 0 excludes nothing.
XSA_HOST_DEVICE double exclusion_coefficient(double yw, double ww, double eps) {
  const double n = own_norm(ww, eps);
  return n == 0 ? 0 : yw / n;
}

/// One element of z = y - (a c) w. Skip the call where a = 0: standard attention, to the bit.
template <class Real>
XSA_HOST_DEVICE Real exclude(Real y, Real ac, Real w) {
  return y - ac * w;
}

/// The gradients of one row, as sums of vectors that the caller has (M 1):
///   dy  = dz - dy_w w
///   dw += dw_dz dz - dy_w (z - z_w w)
///   da  = dstrength
/// z - z_w w is y - 2 c w, which is y mirrored at the plane that w stands on; y itself where eps
/// decides n, for then n does not depend on w (M 2). No factor has both c, about |y| / |w|, and
/// g / n, about |dz| / |w|: their product may leave fp32 where its product with w does not.
struct ExclusionGradient {
  double dy_w, dw_dz, z_w, dstrength;
};

/// g = dz . w.
XSA_HOST_DEVICE ExclusionGradient exclusion_gradient(double a, double c, double g, double ww,
                                                     double eps) {
  const double n = own_norm(ww, eps);
  const double share = n == 0 ? 0 : g / n;
  const bool eps_decides = ww < eps * eps;
  ExclusionGradient gradient{};
  gradient.dstrength = -c * g;
  gradient.dy_w = a * share;
  gradient.dw_dz = -a * c;
  gradient.z_w = c * (eps_decides ? -a : 2 - a);
  return gradient;
}

}  // namespace xsa::kernels
