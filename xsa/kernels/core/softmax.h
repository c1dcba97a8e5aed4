// The running softmax of flash attention, in base 2: x = s log2(e), so that p = 2^(x - max).
#pragma once

#include <cmath>

#include "xsa/kernels/core/host_device.h"

namespace xsa::kernels {

inline constexpr double kLog2E = 1.4426950408889634074;
inline constexpr double kLn2 = 0.69314718055994530942;

/// Below it 2^x is 0 in the kernels: it would be no normal fp32.
inline constexpr float kExp2Floor = -126.0f;

/// 2^f on [-1/2, 1/2], highest power first: the polynomial of degree 5 whose largest relative error
/// is least, 7.5e-8 before rounding (M 5).
inline constexpr float kExp2[6] = {0.0013276472167819943f, 0.0096755413310213911f,
                                   0.055507132728753912f,  0.24022119723969178f,
                                   0.69314696706526493f,   1.0000000716546416f};

/// What a row knows after some of its keys: sum = sum_j 2^(x_j - max). An empty row is {-inf, 0}.
template <class Real>
struct SoftmaxState {
  Real max, sum;
};

/// Natural log-sum-exp; -inf for an empty row.
template <class Real>
XSA_HOST_DEVICE Real log_sum_exp(SoftmaxState<Real> state) {
  return state.sum == 0 ? -static_cast<Real>(INFINITY)
                        : state.max * static_cast<Real>(kLn2) + std::log(state.sum);
}

}  // namespace xsa::kernels
