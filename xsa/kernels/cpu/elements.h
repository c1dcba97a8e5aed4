// Vectors of fp32 from and to rows of any element type: the way for kernels that pass over their
// rows once, where load_row and store_row (simd.h) would cost a copy.
#pragma once

#include "xsa/kernels/cpu/simd.h"

namespace xsa::kernels::cpu {
namespace {

inline Index element_size(Element type) { return type == Element::kFloat32 ? 4 : 2; }

/// Address of row (b, h, t).
HWY_INLINE char* row_at(const Strided& array, Element type, Index b, Index h, Index t) {
  return array.data + (b * array.batch + h * array.head + t * array.row) * element_size(type);
}

using Words = hn::RebindToUnsigned<Floats>;
using HalfWords = hn::Rebind<std::uint16_t, Floats>;

struct Float32 {
  using Stored = float;
  static HWY_INLINE float get(float stored) { return stored; }
  static HWY_INLINE float put(float value) { return value; }
  static HWY_INLINE Vec load(const float* from) { return hn::LoadU(kF, from); }
  static HWY_INLINE void store(Vec value, float* to) { hn::StoreU(value, kF, to); }
};

struct BFloat16 {
  using Stored = std::uint16_t;
  static HWY_INLINE float get(std::uint16_t stored) { return from_bf16(stored); }
  static HWY_INLINE std::uint16_t put(float value) { return to_bf16(value); }
  static HWY_INLINE Vec load(const std::uint16_t* from) {
    const auto words = hn::PromoteTo(Words(), hn::LoadU(HalfWords(), from));
    return hn::BitCast(kF, hn::ShiftLeft<16>(words));
  }
  /// to_bf16 (core/convert.h), a vector at a time.
  static HWY_INLINE void store(Vec value, std::uint16_t* to) {
    const Words words;
    const auto bits = hn::BitCast(words, value), high = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(high, hn::Set(words, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7fffu))));
    const auto nan = hn::Or(high, hn::Set(words, 0x40u));
    const auto is_nan = hn::RebindMask(words, hn::IsNaN(value));
    hn::StoreU(hn::TruncateTo(HalfWords(), hn::IfThenElse(is_nan, nan, rounded)), HalfWords(), to);
  }
};

struct Float16 {
  using Stored = std::uint16_t;
  static constexpr bool kInHardware = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;
  static HWY_INLINE float get(std::uint16_t stored) { return from_fp16(stored); }
  static HWY_INLINE std::uint16_t put(float value) { return to_fp16(value); }
  static HWY_INLINE Vec load(const std::uint16_t* from) {
    if constexpr (kInHardware) {
      const hn::Rebind<hwy::float16_t, Floats> halves;
      return hn::PromoteTo(kF, hn::BitCast(halves, hn::LoadU(HalfWords(), from)));
    }
    float values[kLanes];
    for (Index n = 0; n < kLanes; ++n) values[n] = from_fp16(from[n]);
    return hn::LoadU(kF, values);
  }
  static HWY_INLINE void store(Vec value, std::uint16_t* to) {
    if constexpr (kInHardware) {  // rounds to nearest even
      const auto halves = hn::DemoteTo(hn::Rebind<hwy::float16_t, Floats>(), value);
      hn::StoreU(hn::BitCast(HalfWords(), halves), HalfWords(), to);
      return;
    }
    float values[kLanes];
    hn::StoreU(value, kF, values);
    for (Index n = 0; n < kLanes; ++n) to[n] = to_fp16(values[n]);
  }
};

/// body(Float32()), body(BFloat16()) or body(Float16()).
template <class Body>
HWY_INLINE void with_element(Element type, const Body& body) {
  switch (type) {
    case Element::kFloat32:
      return body(Float32());
    case Element::kBFloat16:
      return body(BFloat16());
    case Element::kFloat16:
      return body(Float16());
  }
}

/// A vector of a row that is whole, or only its first `count` elements.
struct Whole {};
struct Part {
  Index count;
};

/// body(d, Whole or Part) for the vectors of a row; the last is a Part unless `size` is whole
/// vectors.
template <class Body>
HWY_INLINE void by_vectors(Index size, const Body& body) {
  Index d = 0;
  for (; d + kLanes <= size; d += kLanes) body(d, Whole());
  if (d < size) body(d, Part{size - d});
}

template <class E>
HWY_INLINE Vec load(const typename E::Stored* from, Whole) {
  return E::load(from);
}
/// Zeros after the last element.
template <class E>
HWY_INLINE Vec load(const typename E::Stored* from, Part part) {
  typename E::Stored whole[kLanes] = {};
  for (Index n = 0; n < part.count; ++n) whole[n] = from[n];
  return E::load(whole);
}

template <class E>
HWY_INLINE void store(Vec value, typename E::Stored* to, Whole) {
  E::store(value, to);
}
template <class E>
HWY_INLINE void store(Vec value, typename E::Stored* to, Part part) {
  typename E::Stored whole[kLanes];
  E::store(value, whole);
  for (Index n = 0; n < part.count; ++n) to[n] = whole[n];
}

}  // namespace
}  // namespace xsa::kernels::cpu
