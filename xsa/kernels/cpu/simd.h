// Vectors, the two building blocks of all tiles (multiply_add, exp2), and the ways between strided
// rows and panels. No include guard against other instruction sets is needed: a .cpp file includes
// this once, compiled for one of them, and everything is internal to it.
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

/// 2^x; exactly 0 below kExp2Floor - 1/2, at least 2^127 above 127; NaN stays NaN (M 5).
HWY_INLINE Vec exp2(Vec x) {
#if HWY_TARGET == HWY_AVX3
  const Vec magic = hn::Set(kF, 12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
#else
  // Comparisons and no Min and Max, which lose a NaN on some targets.
  const Vec high = hn::Set(kF, 127.0f), low = hn::Set(kF, kExp2Floor - 1.0f);
  x = hn::IfThenElse(hn::Gt(x, high), high, hn::IfThenElse(hn::Lt(x, low), low, x));
  const Vec magic = hn::Set(kF, 12582912.0f + 127.0f);  // and makes 127 + it the exponent's bits
#endif
  const Vec rounded = hn::Add(x, magic);
  const Vec whole = hn::Sub(rounded, magic);
  const Vec f = hn::Sub(x, whole);
  Vec p = hn::Set(kF, kExp2[0]);
  HWY_UNROLL(5)
  for (int n = 1; n < 6; ++n) p = hn::MulAdd(p, f, hn::Set(kF, kExp2[n]));
#if HWY_TARGET == HWY_AVX3
  const __mmask16 normal =
      _mm512_cmp_ps_mask(x.raw, hn::Set(kF, kExp2Floor).raw, _CMP_NLT_UQ);  // true for NaN
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

// ---- strided rows of any element type <-> fp32 rows

inline Index element_size(Element type) { return type == Element::kFloat32 ? 4 : 2; }

/// Address of row (b, h, t).
HWY_INLINE char* row_at(const Strided& array, Element type, Index b, Index h, Index t) {
  return array.data + (b * array.batch + h * array.head + t * array.row) * element_size(type);
}

/// One row of `size` elements to fp32, zeros up to the next whole vector.
inline void load_row(const char* from, Element type, Index stride, Index size,
                     float* HWY_RESTRICT to) {
  if (type == Element::kFloat32) {
    const float* floats = reinterpret_cast<const float*>(from);
    if (stride == 1) {
      for (Index d = 0; d < size; ++d) to[d] = floats[d];
    } else {
      for (Index d = 0; d < size; ++d) to[d] = floats[d * stride];
    }
  } else {
    const std::uint16_t* halves = reinterpret_cast<const std::uint16_t*>(from);
    if (type == Element::kFloat16) {
      for (Index d = 0; d < size; ++d) to[d] = from_fp16(halves[d * stride]);
    } else if (stride == 1) {
      for (Index d = 0; d < size; ++d) to[d] = from_bf16(halves[d]);
    } else {
      for (Index d = 0; d < size; ++d) to[d] = from_bf16(halves[d * stride]);
    }
  }
  for (Index d = size; d < padded(size); ++d) to[d] = 0;
}

/// factor * one fp32 row, rounded to nearest even.
inline void store_row(const float* HWY_RESTRICT from, float factor, char* to, Element type,
                      Index stride, Index size) {
  if (type == Element::kFloat32) {
    float* floats = reinterpret_cast<float*>(to);
    if (stride == 1) {
      for (Index d = 0; d < size; ++d) floats[d] = factor * from[d];
    } else {
      for (Index d = 0; d < size; ++d) floats[d * stride] = factor * from[d];
    }
  } else {
    std::uint16_t* halves = reinterpret_cast<std::uint16_t*>(to);
    if (type == Element::kFloat16) {
      for (Index d = 0; d < size; ++d) halves[d * stride] = to_fp16(factor * from[d]);
    } else if (stride == 1) {
      for (Index d = 0; d < size; ++d) halves[d] = to_bf16(factor * from[d]);
    } else {
      for (Index d = 0; d < size; ++d) halves[d * stride] = to_bf16(factor * from[d]);
    }
  }
}

/// fp32 rows that broadcasts can read: the caller's own memory, or a copy.
struct Rows {
  const float* data;
  Index stride;
};

/// A stride between packed rows that does not make them collide in L1.
HWY_INLINE Index packed_stride(Index size) {
  return padded(size) % 256 == 0 ? padded(size) + kLanes : padded(size);
}

/// Rows [begin, begin + count) of head (b, h), copied to `copy`, count * packed_stride floats.
inline Rows copy_rows(const Strided& array, Element type, Index b, Index h, Index begin,
                      Index count, Index size, float* copy) {
  const Index stride = packed_stride(size);
  const char* first = row_at(array, type, b, h, begin);
  for (Index r = 0; r < count; ++r)
    load_row(first + r * array.row * element_size(type), type, array.element, size,
             copy + r * stride);
  return {copy, stride};
}

/// The same, but dense fp32 rows are read where they are, unless their stride makes L1 lines
/// collide.
inline Rows rows_of(const Strided& array, Element type, Index b, Index h, Index begin, Index count,
                    Index size, float* copy) {
  if (type == Element::kFloat32 && array.element == 1 && array.row == size && size % 256 != 0)
    return {reinterpret_cast<const float*>(row_at(array, type, b, h, begin)), array.row};
  return copy_rows(array, type, b, h, begin, count, size, copy);
}

/// Whether rows of `size` can be used where they are: fp32, dense, whole vectors.
HWY_INLINE bool in_place(const Strided& array, Element type, Index size) {
  return type == Element::kFloat32 && array.element == 1 && size % kLanes == 0;
}

/// Rows [t, t + count) as fp32 with whole vectors: in place, or copied to `copy`,
/// count * padded(size) floats.
inline Rows whole_rows(const Strided& array, Element type, Index b, Index h, Index t, Index count,
                       Index size, float* copy) {
  const char* first = row_at(array, type, b, h, t);
  if (in_place(array, type, size)) return {reinterpret_cast<const float*>(first), array.row};
  for (Index r = 0; r < count; ++r)
    load_row(first + r * array.row * element_size(type), type, array.element, size,
             copy + r * padded(size));
  return {copy, padded(size)};
}

// ---- fp32 rows <-> panels, where a row is a lane: element (d, row) lies at panel[d * width + row]

#if HWY_TARGET == HWY_SCALAR

inline void rows_to_panel(Rows rows, Index, Index size, float factor, float*, float* panel,
                          Index width) {
  for (Index d = 0; d < size; ++d) panel[d * width] = factor * rows.data[d];
}

inline void panel_to_rows(const float* panel, Index width, Index, Index size, Vec factor, float*,
                          float* rows, Index) {
  for (Index d = 0; d < size; ++d) rows[d] = hn::GetLane(factor) * panel[d * width];
}

#else

/// Four floats n of the vector are those at from + n * stride.
template <class D>
HWY_INLINE hn::Vec<D> load_quads(D d, const float* from, Index stride) {
  constexpr Index kQuads = hn::MaxLanes(D()) / 4;
  if constexpr (kQuads == 1) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_quads(half, from + kQuads / 2 * stride, stride),
                       load_quads(half, from, stride));
  }
}

template <class D>
HWY_INLINE void store_quads(D d, hn::Vec<D> v, float* to, Index stride) {
  constexpr Index kQuads = hn::MaxLanes(D()) / 4;
  if constexpr (kQuads == 1) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    store_quads(half, hn::LowerHalf(half, v), to, stride);
    store_quads(half, hn::UpperHalf(half, v), to + kQuads / 2 * stride, stride);
  }
}

/// Transposes the 4 x 4 that the quads n of four vectors are.
HWY_INLINE void transpose_quads(Vec (&v)[4]) {
  const hn::Repartition<double, Floats> pairs;
  const auto low = [&](Vec a, Vec b) {
    return hn::BitCast(kF,
                       hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const auto high = [&](Vec a, Vec b) {
    return hn::BitCast(kF,
                       hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const Vec a = hn::InterleaveLower(kF, v[0], v[1]), b = hn::InterleaveLower(kF, v[2], v[3]);
  const Vec c = hn::InterleaveUpper(kF, v[0], v[1]), d = hn::InterleaveUpper(kF, v[2], v[3]);
  v[0] = low(a, b), v[1] = high(a, b), v[2] = low(c, d), v[3] = high(c, d);
}

/// `count` rows (zeros up to kLanes) times factor into one vector column of a panel. `scratch`
/// takes kLanes * padded(size) floats.
inline void rows_to_panel(Rows rows, Index count, Index size, float factor,
                          float* HWY_RESTRICT scratch, float* HWY_RESTRICT panel, Index width) {
  if (count < kLanes || size % 4 != 0) {
    const Index stride = padded(size);
    for (Index r = 0; r < kLanes; ++r)
      for (Index d = 0; d < stride; ++d)
        scratch[r * stride + d] = r < count && d < size ? rows.data[r * rows.stride + d] : 0;
    rows = {scratch, stride};
  }
  const Vec scale = hn::Set(kF, factor);
  for (Index d = 0; d < size; d += 4) {
    Vec v[4];
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i)
      v[i] = load_quads(kF, rows.data + i * rows.stride + d, 4 * rows.stride);
    transpose_quads(v);
    for (Index i = 0; i < min_of(4, size - d); ++i)
      hn::StoreU(hn::Mul(scale, v[i]), kF, panel + (d + i) * width);
  }
}

/// The way back: one vector column, times factor, to `count` rows. Reads panel rows up to the next
/// multiple of 4 and writes whole vectors; `scratch` as above.
inline void panel_to_rows(const float* panel, Index width, Index count, Index size, Vec factor,
                          float* HWY_RESTRICT scratch, float* HWY_RESTRICT rows, Index stride) {
  const bool direct = count == kLanes && size % kLanes == 0;
  float* to = direct ? rows : scratch;
  const Index step = direct ? stride : padded(size);
  for (Index d = 0; d < size; d += 4) {
    Vec v[4];
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) v[i] = hn::Mul(factor, hn::LoadU(kF, panel + (d + i) * width));
    transpose_quads(v);
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) store_quads(kF, v[i], to + i * step + d, 4 * step);
  }
  if (direct) return;
  for (Index r = 0; r < count; ++r)
    for (Index d = 0; d < padded(size); ++d)
      rows[r * stride + d] = d < size ? scratch[r * step + d] : 0;
}

#endif

// ---- masks

/// Keys [begin[n], end[n]) that query n of a block sees in one pass; neither falls with n. Whole
/// vectors are filled: the last query's bounds are repeated.
struct Bounds {
  Index *begin, *end;
};

/// Key rows [begin, end) of a tile that vectors [first, first + count) of a panel see; where bit j
/// of `masked` is set, not all lanes of vector first + j see all of them.
struct Segment {
  Index begin, end, first, count;
  unsigned masked;
};

/// A tile cut so that hardly a vector is computed that sees nothing.
struct Segments {
  Segment at[4 * kPanelVectors];
  int count = 0;
  Index begin() const { return count == 0 ? 0 : at[0].begin; }
  Index end() const { return count == 0 ? 0 : at[count - 1].end; }
};

/// The tile of a panel, given its queries' bounds, and key rows [key, key + rows).
inline Segments segments_of(Bounds bounds, Index key, Index rows, Index vectors) {
  // Rows that a lane of vector j sees, outwards to whole register tiles, and that all lanes see.
  Index any_begin[kPanelVectors], any_end[kPanelVectors];
  Index all_begin[kPanelVectors], all_end[kPanelVectors];
  Index cuts[4 * kPanelVectors];
  int count = 0;
  const auto cut = [&](Index row) {
    row = max_of(0, min_of(rows, row));
    int n = count++;
    for (; n > 0 && cuts[n - 1] > row; --n) cuts[n] = cuts[n - 1];
    cuts[n] = row;
  };
  const auto down = [](Index row) { return row & -static_cast<Index>(kTileRows); };
  for (Index j = 0; j < vectors; ++j) {
    const Index low = j * kLanes, high = low + kLanes - 1;
    all_begin[j] = bounds.begin[high] - key, all_end[j] = bounds.end[low] - key;
    any_begin[j] = down(bounds.begin[low] - key);
    any_end[j] = down(bounds.end[high] - key + kTileRows - 1);
    cut(any_begin[j]), cut(any_end[j]);
    cut(down(all_begin[j] + kTileRows - 1)), cut(down(all_end[j]));
  }
  Segments segments;
  for (int n = 0; n + 1 < count; ++n) {
    if (cuts[n] == cuts[n + 1]) continue;
    Segment segment{cuts[n], cuts[n + 1], 0, 0, 0};
    for (Index j = 0; j < vectors; ++j) {
      if (any_begin[j] > segment.begin || any_end[j] <= segment.begin) continue;
      if (segment.count++ == 0) segment.first = j;
      if (all_begin[j] > segment.begin || all_end[j] < segment.end)
        segment.masked |= 1u << (j - segment.first);
    }
    if (segment.count == 0) continue;
    Segment& before = segments.at[segments.count - 1];
    if (segments.count > 0 && before.end == segment.begin && before.first == segment.first &&
        before.count == segment.count && before.masked == segment.masked)
      before.end = segment.end;
    else
      segments.at[segments.count++] = segment;
  }
  return segments;
}

/// The bounds of a panel's lanes from a tile's first key on.
struct LaneBounds {
  float begin[kPanelVectors * kLanes], end[kPanelVectors * kLanes];
};

inline LaneBounds lane_bounds(Bounds bounds, Index key, Index rows, Index width) {
  LaneBounds lanes;
  for (Index l = 0; l < width; ++l) {
    lanes.begin[l] = static_cast<float>(max_of(0, min_of(rows, bounds.begin[l] - key)));
    lanes.end[l] = static_cast<float>(max_of(0, min_of(rows, bounds.end[l] - key)));
  }
  return lanes;
}

/// Lanes of a vector, the one that starts at `lane`, that see row r.
HWY_INLINE hn::Mask<Floats> sees(const LaneBounds& lanes, Index lane, Index r) {
  const Vec row = hn::Set(kF, static_cast<float>(r));
  return hn::And(hn::Ge(row, hn::LoadU(kF, lanes.begin + lane)),
                 hn::Lt(row, hn::LoadU(kF, lanes.end + lane)));
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
