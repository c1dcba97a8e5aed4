// The ways between strided rows of any element type, rows of fp32, and panels.
#pragma once

#include "xsa/kernels/cpu/elements.h"

namespace xsa::kernels::cpu {
namespace {

/// One row of `size` elements to fp32, zeros up to the next whole vector.
inline void load_row(const char* from, Element type, Index stride, Index size,
                     float* HWY_RESTRICT to) {
  with_element(type, [&](auto element) {
    using E = decltype(element);
    const auto* stored = reinterpret_cast<const typename E::Stored*>(from);
    if (stride == 1)
      by_vectors(size,
                 [&](Index d, auto part) { hn::StoreU(load<E>(stored + d, part), kF, to + d); });
    else
      for (Index d = 0; d < padded(size); ++d) to[d] = d < size ? E::get(stored[d * stride]) : 0;
  });
}

/// One fp32 row that holds whole vectors, rounded to nearest even.
inline void store_row(const float* HWY_RESTRICT from, char* to, Element type, Index stride,
                      Index size) {
  with_element(type, [&](auto element) {
    using E = decltype(element);
    auto* stored = reinterpret_cast<typename E::Stored*>(to);
    if (stride == 1)
      by_vectors(size,
                 [&](Index d, auto part) { store<E>(hn::LoadU(kF, from + d), stored + d, part); });
    else
      for (Index d = 0; d < size; ++d) stored[d * stride] = E::put(from[d]);
  });
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

}  // namespace
}  // namespace xsa::kernels::cpu
