// Rotary positions of one instruction set: a row's two halves are read, turned and written as
// vectors, every head of a token by the same cosines and sines.
#pragma once

#include "xsa/kernels/cpu/elements.h"

namespace xsa::kernels::cpu {
namespace {

template <class E>
HWY_INLINE void rotate_row(const typename E::Stored* x, typename E::Stored* y, const float* cos,
                           const float* sin, Vec sign, Index half) {
  by_vectors(half, [&](Index i, auto extent) {
    const Vec first = load<E>(x + i, extent), second = load<E>(x + half + i, extent);
    const Vec c = load<Float32>(cos + i, extent);
    const Vec s = hn::Mul(sign, load<Float32>(sin + i, extent));
    store<E>(hn::NegMulAdd(second, s, hn::Mul(first, c)), y + i, extent);
    store<E>(hn::MulAdd(first, s, hn::Mul(second, c)), y + half + i, extent);
  });
}

/// Tokens [begin, end) of the B T.
void rotary_tokens(const RotaryCall& call, std::int64_t begin, std::int64_t end) {
  const Vec sign = hn::Set(kF, call.inverse ? -1.0f : 1.0f);
  const Index half = call.head_dim / 2;
  with_element(call.type, [&](auto element) {
    using E = decltype(element);
    using Stored = typename E::Stored;
    for (Index n = begin; n < end; ++n) {
      const Index b = n / call.tokens, t = n % call.tokens;
      for (Index h = 0; h < call.heads; ++h)
        rotate_row<E>(reinterpret_cast<const Stored*>(row_at(call.x, call.type, b, h, t)),
                      reinterpret_cast<Stored*>(row_at(call.y, call.type, b, h, t)),
                      call.cos + t * half, call.sin + t * half, sign, half);
    }
  });
}

}  // namespace
}  // namespace xsa::kernels::cpu
