// The linear layer of one instruction set: tiles of dot products, M rows of x against R rows of the
// weight. Every dot product is summed in the same order in a tile of any size.
//
// Tiles of several weight rows hide the additions' latency. One row of x against a 16-bit weight
// that comes from memory is another matter: there a single stream, asked for ahead of its use,
// keeps the memory busiest (by a quarter on Zen 5, measured; fp32 gains nothing).
#pragma once

#include <hwy/cache_control.h>

#include "xsa/kernels/cpu/elements.h"

namespace xsa::kernels::cpu {
namespace {

constexpr Index kAhead = 8192;  // bytes

template <class E, int M, int R, bool kStream = false>
HWY_INLINE void linear_tile(const LinearCall& call, Index row, Index output) {
  const Index inputs = call.inputs;
  const float* const x = call.x + row * inputs;
  const auto* const w = static_cast<const typename E::Stored*>(call.weight) + output * inputs;
  Vec sums[M][R];
  zero_tile(sums);
  by_vectors(inputs, [&](Index i, auto part) HWY_ATTR {
    Vec rows[M];
    HWY_UNROLL(8)
    for (int m = 0; m < M; ++m) rows[m] = load<Float32>(x + m * inputs + i, part);
    HWY_UNROLL(8)
    for (int r = 0; r < R; ++r) {
      if constexpr (kStream)
        hwy::Prefetch(reinterpret_cast<const char*>(w + r * inputs + i) + kAhead);
      const Vec weight = load<E>(w + r * inputs + i, part);
      HWY_UNROLL(8)
      for (int m = 0; m < M; ++m) sums[m][r] = hn::MulAdd(rows[m], weight, sums[m][r]);
    }
  });
  for (int m = 0; m < M; ++m)
    for (int r = 0; r < R; ++r)
      call.y[(row + m) * call.outputs + output + r] =
          hn::GetLane(hn::SumOfLanes(kF, sums[m][r])) + (call.bias ? call.bias[output + r] : 0.0f);
}

/// All rows of x for outputs [begin, end).
inline void linear_outputs(const LinearCall& call, Index begin, Index end) {
  constexpr Index kCached = 1 << 20;  // weights that the second cache holds
  const bool from_memory = call.inputs * call.outputs > kCached;
  with_element(call.type, [&](auto element) {
    using E = decltype(element);
    if (kManyRegisters && sizeof(typename E::Stored) == 2 && call.rows == 1 && from_memory) {
      for (Index output = begin; output < end; ++output)
        linear_tile<E, 1, 1, /*kStream=*/true>(call, 0, output);
      return;
    }
    by_rows<4>(0, call.rows, [&](auto rows, Index row) {
      constexpr int kRows = decltype(rows)::value;
      constexpr int kOutputs = kManyRegisters ? (kRows == 4 ? 4 : 8) : 8 / kRows;
      by_rows<kOutputs>(begin, end, [&](auto outputs, Index output) {
        linear_tile<E, kRows, decltype(outputs)::value>(call, row, output);
      });
    });
  });
}

}  // namespace
}  // namespace xsa::kernels::cpu
