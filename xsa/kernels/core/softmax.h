// The running softmax of flash attention: p = e^(s - max), taken as 2^((s - max) log2(e)).
#pragma once

#include <cmath>

#include "xsa/kernels/core/host_device.h"

namespace xsa::kernels {

inline constexpr float kLog2E = 1.4426950408889634074f;

/// Below it, -126 ln 2, e^x is 0 in the kernels: it would be no normal fp32. Above kExpMost it is
/// e^kExpMost, which is near the largest one.
inline constexpr float kExpFloor = -87.33654f, kExpMost = 88.0f;

/// 2^f on [-1/2, 1/2], highest power first: the polynomial of degree 5 whose largest relative error
/// is least, 7.5e-8 before rounding (M 5).
inline constexpr float kExp2[6] = {0.0013276472167819943f, 0.0096755413310213911f,
                                   0.055507132728753912f,  0.24022119723969178f,
                                   0.69314696706526493f,   1.0000000716546416f};

/// What a row knows after some of its keys: sum = sum_j e^(s_j - max). An empty row is {-inf, 0}.
template <class Real>
struct SoftmaxState {
  Real max, sum;
};

/// -inf for an empty row.
template <class Real>
XSA_HOST_DEVICE Real log_sum_exp(SoftmaxState<Real> state) {
  return state.sum == 0 ? -static_cast<Real>(INFINITY) : state.max + std::log(state.sum);
}

}  // namespace xsa::kernels
