// Vectors and the two building blocks of all tiles: multiply_add and exp. No include guard against
// other instruction sets is needed: a .cpp file includes this once, compiled for one of them, and
// everything is internal to it.
#pragma once

#define HWY_IS_DEBUG_BUILD 0      // its checks call into the shared library, which we never link
#define HWY_DISABLE_PCLMUL_AES 1  // not needed: ask the machine for less
#include <hwy/highway.h>

#include <cstdint>

#include "xsa/kernels/core/convert.h"
#include "xsa/kernels/core/softmax.h"
#include "xsa/kernels/cpu/call.h"

namespace xsa::kernels::cpu {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Vec = hn::Vec<Floats>;
using Index = std::int64_t;
constexpr Floats kF;
constexpr Index kLanes = hn::MaxLanes(Floats());
constexpr Index kLargestDim = 256;  // of a head; a multiple of kLanes

// Register tiles, rows x vectors: scores, P V and dQ; and dK, dV. AVX-512 has 32 registers.
constexpr bool kManyRegisters = kLanes == 16;
constexpr int kPanelVectors = 3, kTileRows = kManyRegisters ? 8 : 4;
constexpr int kSumRows = 6, kSumVectors = kManyRegisters ? 4 : 2;

template <int N>
struct Int {
  static constexpr int value = N;
};

HWY_INLINE Index min_of(Index a, Index b) { return a < b ? a : b; }
HWY_INLINE Index max_of(Index a, Index b) { return a > b ? a : b; }
HWY_INLINE Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }
HWY_INLINE Index padded(Index n) { return ceil_div(n, kLanes) * kLanes; }

/// body(Int<R>, first row): R rows at a time, fewer at the end.
template <int R, class Body>
HWY_INLINE void by_rows(Index begin, Index end, const Body& body) {
  for (; begin + R <= end; begin += R) body(Int<R>(), begin);
  if constexpr (R > 1) by_rows<R / 2>(begin, end, body);
}

/// body(Int<N>) for the N in [1, Max] that `vectors` is.
template <int Max, class Body>
HWY_INLINE void with_vectors(Index vectors, const Body& body) {
  if constexpr (Max == 1) {
    body(Int<1>());
  } else if (vectors == Max) {
    body(Int<Max>());
  } else {
    with_vectors<Max - 1>(vectors, body);
  }
}

/// Piece n of `vectors` cut into as few equal pieces of at most `most` as there are: its first
/// vector. 4 is cut into 2 + 2 and not into 3 + 1.
HWY_INLINE Index pieces_of(Index vectors, Index most) { return ceil_div(vectors, most); }
HWY_INLINE Index piece_begin(Index vectors, Index most, Index n) {
  return n * vectors / pieces_of(vectors, most);
}

/// Queries of a block that lie side by side in the vectors of panel n.
struct Span {
  Index begin, count;    // first query within the block; queries
  Index vectors, width;  // ceil(count / kLanes); vectors * kLanes
};

HWY_INLINE Index panels_of(Index queries) {
  return pieces_of(ceil_div(queries, kLanes), kPanelVectors);
}
HWY_INLINE Span span_of(Index queries, Index n) {
  const Index vectors = ceil_div(queries, kLanes);
  const Index first = piece_begin(vectors, kPanelVectors, n);
  const Index last = piece_begin(vectors, kPanelVectors, n + 1);
  const Index begin = first * kLanes;
  return {begin, min_of(queries, last * kLanes) - begin, last - first, (last - first) * kLanes};
}

/// acc[i][j] += sum over t of a[i * a_row + t * a_step] * b[t * b_step + j's vector].
template <int R, int N>
HWY_INLINE void multiply_add(Vec (&acc)[R][N], const float* HWY_RESTRICT a, Index a_row,
                             Index a_step, const float* HWY_RESTRICT b, Index b_step, Index steps) {
  HWY_UNROLL(4)
  for (Index t = 0; t < steps; ++t) {
    Vec columns[N];
    HWY_UNROLL(8)
    for (int j = 0; j < N; ++j) columns[j] = hn::LoadU(kF, b + j * kLanes);
    HWY_UNROLL(8)
    for (int i = 0; i < R; ++i) {
      const Vec x = hn::Set(kF, a[i * a_row]);
      HWY_UNROLL(8)
      for (int j = 0; j < N; ++j) acc[i][j] = hn::MulAdd(x, columns[j], acc[i][j]);
    }
    a += a_step;
    b += b_step;
  }
}

/// The same for a finite or not: where b is 0, nothing is added, though a be NaN.
template <int R, int N>
HWY_INLINE void multiply_add_guarded(Vec (&acc)[R][N], const float* HWY_RESTRICT a, Index a_row,
                                     Index a_step, const float* HWY_RESTRICT b, Index b_step,
                                     Index steps) {
  for (Index t = 0; t < steps; ++t) {
    for (int j = 0; j < N; ++j) {
      const Vec column = hn::LoadU(kF, b + t * b_step + j * kLanes);
      const auto is_zero = hn::Eq(column, hn::Zero(kF));
      for (int i = 0; i < R; ++i) {
        const Vec sum = hn::MulAdd(hn::Set(kF, a[i * a_row + t * a_step]), column, acc[i][j]);
        acc[i][j] = hn::IfThenElse(is_zero, acc[i][j], sum);
      }
    }
  }
}

/// multiply_add, steps of `a` being 1, where b may be anything: a factor a of 0 adds nothing.
template <int R, int N>
HWY_INLINE void multiply_add_where_not_zero(Vec (&acc)[R][N], const float* HWY_RESTRICT a,
                                            Index a_row, const float* HWY_RESTRICT b, Index b_step,
                                            Index steps) {
  for (Index t = 0; t < steps; ++t)
    for (int i = 0; i < R; ++i) {
      const float factor = a[i * a_row + t];
      if (factor == 0) continue;
      for (int j = 0; j < N; ++j)
        acc[i][j] =
            hn::MulAdd(hn::Set(kF, factor), hn::LoadU(kF, b + t * b_step + j * kLanes), acc[i][j]);
    }
}

template <int R, int N>
HWY_INLINE void load_tile(Vec (&acc)[R][N], const float* from, Index row) {
  HWY_UNROLL(8)
  for (int i = 0; i < R; ++i) {
    HWY_UNROLL(8)
    for (int j = 0; j < N; ++j) acc[i][j] = hn::LoadU(kF, from + i * row + j * kLanes);
  }
}

template <int R, int N>
HWY_INLINE void store_tile(const Vec (&acc)[R][N], float* to, Index row) {
  HWY_UNROLL(8)
  for (int i = 0; i < R; ++i) {
    HWY_UNROLL(8)
    for (int j = 0; j < N; ++j) hn::StoreU(acc[i][j], kF, to + i * row + j * kLanes);
  }
}

template <int R, int N>
HWY_INLINE void zero_tile(Vec (&acc)[R][N]) {
  HWY_UNROLL(8)
  for (int i = 0; i < R; ++i) {
    HWY_UNROLL(8)
    for (int j = 0; j < N; ++j) acc[i][j] = hn::Zero(kF);
  }
}

/// to += acc: what a tile summed from zero joins a longer sum.
template <int R, int N>
HWY_INLINE void add_tile(const Vec (&acc)[R][N], float* to, Index row) {
  HWY_UNROLL(8)
  for (int i = 0; i < R; ++i) {
    HWY_UNROLL(8)
    for (int j = 0; j < N; ++j) {
      float* place = to + i * row + j * kLanes;
      hn::StoreU(hn::Add(acc[i][j], hn::LoadU(kF, place)), kF, place);
    }
  }
}

/// Every row of the tile is the one at `start`.
template <int R, int N>
HWY_INLINE void start_tile(Vec (&acc)[R][N], const float* start) {
  HWY_UNROLL(8)
  for (int j = 0; j < N; ++j) {
    const Vec first = hn::LoadU(kF, start + j * kLanes);
    HWY_UNROLL(8)
    for (int i = 0; i < R; ++i) acc[i][j] = first;
  }
}

/// e^x; exactly 0 below kExpFloor (a little lower on some targets), e^most above `most` <=
/// kExpMost; NaN stays NaN (M 5).
HWY_INLINE Vec exp(Vec x, float most = kExpMost) {
#if HWY_TARGET == HWY_AVX3
  x = hn::Min(hn::Set(kF, most), x);           // the operands' order lets a NaN through
  const Vec magic = hn::Set(kF, 12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
#else
  const Vec high = hn::Set(kF, most), low = hn::Set(kF, -88.0f);  // 2^-126.96, whose bits are 0's
#if HWY_TARGET == HWY_AVX2
  x = hn::Max(low, hn::Min(high, x));  // the operands' order lets a NaN through
#else
  // Comparisons and no Min and Max, which lose a NaN on some targets.
  x = hn::IfThenElse(hn::Gt(x, high), high, hn::IfThenElse(hn::Lt(x, low), low, x));
#endif
  const Vec magic = hn::Set(kF, 12582912.0f + 127.0f);  // and makes 127 + it the exponent's bits
#endif
  const Vec log2_e = hn::Set(kF, kLog2E);
  const Vec rounded = hn::MulAdd(x, log2_e, magic);
  const Vec whole = hn::Sub(rounded, magic);
  const Vec f = hn::MulSub(x, log2_e, whole);  // a product that is not rounded
  Vec p = hn::Set(kF, kExp2[0]);
  HWY_UNROLL(5)
  for (int n = 1; n < 6; ++n) p = hn::MulAdd(p, f, hn::Set(kF, kExp2[n]));
#if HWY_TARGET == HWY_AVX3
  const __mmask16 normal =
      _mm512_cmp_ps_mask(x.raw, hn::Set(kF, kExpFloor).raw, _CMP_NLT_UQ);  // true for NaN
  return Vec{_mm512_maskz_scalef_ps(normal, p.raw, whole.raw)};
#else
  const hn::RebindToSigned<Floats> ints;
  return hn::Mul(p, hn::BitCast(kF, hn::ShiftLeft<23>(hn::BitCast(ints, rounded))));
#endif
}

HWY_INLINE float dot(const float* a, const float* b, Index padded_size) {
  Vec sum = hn::Zero(kF);
  for (Index d = 0; d < padded_size; d += kLanes)
    sum = hn::MulAdd(hn::LoadU(kF, a + d), hn::LoadU(kF, b + d), sum);
  return hn::GetLane(hn::SumOfLanes(kF, sum));
}

inline double dot_double(const float* a, const float* b, Index size) {
  double sum = 0;
  for (Index d = 0; d < size; ++d) sum += static_cast<double>(a[d]) * b[d];
  return sum;
}

inline bool all_finite(const float* rows, Index stride, Index count, Index size) {
  std::uint32_t infinite = 0;
  for (Index r = 0; r < count; ++r)
    for (Index d = 0; d < size; ++d)
      infinite |= (float_bits(rows[r * stride + d]) & 0x7f800000u) == 0x7f800000u;
  return infinite == 0;
}

/// Carves a workspace into arrays, each on a line of its own.
struct Carver {
  float* at;
  float* take(Index floats) {
    float* taken = at;
    at += size(floats);
    return taken;
  }
  Index* take_indices(Index count) { return reinterpret_cast<Index*>(take(2 * count)); }
  static Index size(Index floats) { return ceil_div(floats, 16) * 16; }
};

}  // namespace
}  // namespace xsa::kernels::cpu
