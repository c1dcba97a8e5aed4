// Rows in steps: what elements.h does with a vector, done with as many vectors as an element type
// likes best. bf16 takes two, the even elements and the odd ones, which need no shuffling.
//
// A step of E is kStep elements as kVectors vectors. Kept as floats, element d of a row lies at
// place(d).
#pragma once

#include "xsa/kernels/cpu/elements.h"

namespace xsa::kernels::cpu {
namespace {

template <int N>
struct Vectors {
  Vec at[N];
};

/// result[n] = body(vectors...[n]) for every n.
template <int N, class Body, class... More>
HWY_INLINE Vectors<N> map(const Body& body, const Vectors<N>& first, const More&... more) {
  Vectors<N> result;
  HWY_UNROLL(2)
  for (int n = 0; n < N; ++n) result.at[n] = body(first.at[n], more.at[n]...);
  return result;
}

template <class E>
struct Steps {
  using Stored = typename E::Stored;
  static constexpr int kVectors = 1;
  static constexpr Index kStep = kLanes;
  static HWY_INLINE Index place(Index d) { return d; }
  static HWY_INLINE Vectors<1> load(const Stored* from) { return {{E::load(from)}}; }
  static HWY_INLINE void store(const Vectors<1>& value, Stored* to) { E::store(value.at[0], to); }
  /// For values that hold no NaN.
  static HWY_INLINE void store_no_nan(const Vectors<1>& value, Stored* to) { store(value, to); }
};

template <>
struct Steps<BFloat16> {
  using Stored = std::uint16_t;
  static constexpr int kVectors = 2;
  static constexpr Index kStep = 2 * kLanes;
  static HWY_INLINE Index place(Index d) {
    return d / kStep * kStep + d % 2 * kLanes + d % kStep / 2;
  }
  static HWY_INLINE Vectors<2> load(const Stored* from) {
    std::uint32_t pairs[kLanes];
    __builtin_memcpy(pairs, from, sizeof pairs);
    const auto words = hn::LoadU(Words(), pairs);
    return {{hn::BitCast(kF, hn::ShiftLeft<16>(words)),
             hn::BitCast(kF, hn::And(words, hn::Set(Words(), kUpper)))}};
  }
  static HWY_INLINE void store(const Vectors<2>& value, Stored* to) {
    store_words(keep_nan(value.at[0]), keep_nan(value.at[1]), to);
  }
  static HWY_INLINE void store_no_nan(const Vectors<2>& value, Stored* to) {
    store_words(rounded(value.at[0]), rounded(value.at[1]), to);
  }

 private:
  using WordVec = hn::Vec<Words>;
  static constexpr std::uint32_t kUpper = 0xffff0000u;
  /// to_bf16 (core/convert.h) in the upper half of each word, and anything in the lower one.
  static HWY_INLINE WordVec rounded(Vec value) {
    const auto bits = hn::BitCast(Words(), value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(Words(), 1u));
    return hn::Add(bits, hn::Add(odd, hn::Set(Words(), 0x7fffu)));
  }
  static HWY_INLINE WordVec keep_nan(Vec value) {
    const auto quiet = hn::Or(hn::BitCast(Words(), value), hn::Set(Words(), 0x400000u));
    return hn::IfThenElse(hn::RebindMask(Words(), hn::IsNaN(value)), quiet, rounded(value));
  }
  static HWY_INLINE void store_words(WordVec even, WordVec odd, Stored* to) {
    std::uint32_t pairs[kLanes];
    const auto upper = hn::And(odd, hn::Set(Words(), kUpper));
    hn::StoreU(hn::Or(hn::ShiftRight<16>(even), upper), Words(), pairs);
    __builtin_memcpy(to, pairs, sizeof pairs);
  }
};

/// body(d, Whole or Part) for the steps of a row; the last is a Part unless `size` is whole steps.
template <class E, class Body>
HWY_INLINE void by_steps(Index size, const Body& body) {
  Index d = 0;
  for (; d + Steps<E>::kStep <= size; d += Steps<E>::kStep) body(d, Whole());
  if (d < size) body(d, Part{size - d});
}

/// Floats that hold whole steps of a row.
template <class E>
HWY_INLINE Index whole_steps(Index size) {
  return ceil_div(size, Steps<E>::kStep) * Steps<E>::kStep;
}

template <class E>
HWY_INLINE auto load_step(const typename E::Stored* from, Whole) {
  return Steps<E>::load(from);
}
/// Zeros after the last element.
template <class E>
HWY_INLINE auto load_step(const typename E::Stored* from, Part part) {
  typename E::Stored whole[Steps<E>::kStep] = {};
  for (Index n = 0; n < part.count; ++n) whole[n] = from[n];
  return Steps<E>::load(whole);
}

template <class E, class Step>
HWY_INLINE void store_step(const Step& value, typename E::Stored* to, Whole) {
  Steps<E>::store(value, to);
}
template <class E, class Step>
HWY_INLINE void store_step(const Step& value, typename E::Stored* to, Part part) {
  typename E::Stored whole[Steps<E>::kStep];
  Steps<E>::store(value, whole);
  for (Index n = 0; n < part.count; ++n) to[n] = whole[n];
}
template <class E, class Step>
HWY_INLINE void store_step_no_nan(const Step& value, typename E::Stored* to, Whole) {
  Steps<E>::store_no_nan(value, to);
}
template <class E, class Step>
HWY_INLINE void store_step_no_nan(const Step& value, typename E::Stored* to, Part part) {
  store_step<E>(value, to, part);
}

template <int N>
HWY_INLINE void load_floats(Vectors<N>& value, const float* from) {
  HWY_UNROLL(2)
  for (int n = 0; n < N; ++n) value.at[n] = hn::LoadU(kF, from + n * kLanes);
}
template <int N>
HWY_INLINE void store_floats(const Vectors<N>& value, float* to) {
  HWY_UNROLL(2)
  for (int n = 0; n < N; ++n) hn::StoreU(value.at[n], kF, to + n * kLanes);
}

}  // namespace
}  // namespace xsa::kernels::cpu
