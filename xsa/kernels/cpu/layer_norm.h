// Residual sum and LayerNorm of one instruction set. A row stays in the first cache between its
// passes: mean, then variance about it, then the output.
#pragma once

#include <cmath>

#include "xsa/kernels/cpu/elements.h"

namespace xsa::kernels::cpu {
namespace {

/// Zeros after the row's last element.
HWY_INLINE Vec only(Vec value, Whole) { return value; }
HWY_INLINE Vec only(Vec value, Part part) {
  return hn::IfThenElseZero(hn::FirstN(kF, static_cast<std::size_t>(part.count)), value);
}

template <class Stored>
HWY_INLINE Stored* row_of(void* array, Index row, Index width) {
  return static_cast<Stored*>(array) + row * width;
}
template <class Stored>
HWY_INLINE const Stored* row_of(const void* array, Index row, Index width) {
  return static_cast<const Stored*>(array) + row * width;
}

HWY_INLINE float mean_of_lanes(Vec sum, Index width) {
  return hn::GetLane(hn::SumOfLanes(kF, sum)) / static_cast<float>(width);
}

template <class E>
HWY_INLINE void add_layer_norm_row(const AddLayerNormCall& call, Index row) {
  using Stored = typename E::Stored;
  const Stored* x = row_of<Stored>(call.x, row, call.width);
  const Stored* residual = row_of<Stored>(call.residual, row, call.width);
  Stored* sum = row_of<Stored>(call.sum, row, call.width);
  Stored* y = row_of<Stored>(call.y, row, call.width);

  Vec total = hn::Zero(kF);
  by_vectors(call.width, [&](Index c, auto extent) {
    store<E>(hn::Add(load<E>(x + c, extent), load<E>(residual + c, extent)), sum + c, extent);
    total = hn::Add(total, load<E>(sum + c, extent));
  });
  const float mean = mean_of_lanes(total, call.width);
  const Vec center = hn::Set(kF, mean);
  Vec squares = hn::Zero(kF);
  by_vectors(call.width, [&](Index c, auto extent) {
    const Vec d = only(hn::Sub(load<E>(sum + c, extent), center), extent);
    squares = hn::MulAdd(d, d, squares);
  });
  const double variance = mean_of_lanes(squares, call.width);
  const float rstd = static_cast<float>(1 / std::sqrt(variance + call.eps));
  const Vec scale = hn::Set(kF, rstd);
  by_vectors(call.width, [&](Index c, auto extent) {
    const Vec n = hn::Mul(hn::Sub(load<E>(sum + c, extent), center), scale);
    const Vec w = load<Float32>(call.weight + c, extent);
    const Vec b = call.bias ? load<Float32>(call.bias + c, extent) : hn::Zero(kF);
    store<E>(hn::MulAdd(n, w, b), y + c, extent);
  });
  call.mean[row] = mean;
  call.rstd[row] = rstd;
}

/// One row's dx; adds to the piece's dweight and dbias.
template <class E>
HWY_INLINE void add_layer_norm_gradient(const AddLayerNormCall& call, Index row,
                                        float* HWY_RESTRICT dweight, float* HWY_RESTRICT dbias) {
  using Stored = typename E::Stored;
  const Stored* sum = row_of<Stored>(call.sum, row, call.width);
  const Stored* dy = row_of<Stored>(call.dy, row, call.width);
  const Stored* dsum = call.dsum ? row_of<Stored>(call.dsum, row, call.width) : nullptr;
  Stored* dx = row_of<Stored>(call.dx, row, call.width);
  const Vec center = hn::Set(kF, call.mean[row]), scale = hn::Set(kF, call.rstd[row]);

  Vec sum_g = hn::Zero(kF), sum_gn = hn::Zero(kF);
  by_vectors(call.width, [&](Index c, auto extent) {
    const Vec n = hn::Mul(hn::Sub(load<E>(sum + c, extent), center), scale);
    const Vec gradient = load<E>(dy + c, extent);
    const Vec g = hn::Mul(load<Float32>(call.weight + c, extent), gradient);
    sum_g = hn::Add(sum_g, g);
    sum_gn = hn::MulAdd(g, n, sum_gn);
    const Vec old_weight = load<Float32>(dweight + c, extent);
    store<Float32>(hn::MulAdd(gradient, n, old_weight), dweight + c, extent);
    const Vec old_bias = load<Float32>(dbias + c, extent);
    store<Float32>(hn::Add(gradient, old_bias), dbias + c, extent);
  });
  const Vec mean_g = hn::Set(kF, mean_of_lanes(sum_g, call.width));
  const Vec mean_gn = hn::Set(kF, mean_of_lanes(sum_gn, call.width));
  by_vectors(call.width, [&](Index c, auto extent) {
    const Vec n = hn::Mul(hn::Sub(load<E>(sum + c, extent), center), scale);
    const Vec g = hn::Mul(load<Float32>(call.weight + c, extent), load<E>(dy + c, extent));
    const Vec inner = hn::NegMulAdd(n, mean_gn, hn::Sub(g, mean_g));
    const Vec other = dsum ? load<E>(dsum + c, extent) : hn::Zero(kF);
    store<E>(hn::MulAdd(scale, inner, other), dx + c, extent);
  });
}

void add_layer_norm_rows(const AddLayerNormCall& call, std::int64_t begin, std::int64_t end) {
  with_element(call.type, [&](auto element) {
    for (Index row = begin; row < end; ++row) add_layer_norm_row<decltype(element)>(call, row);
  });
}

void add_layer_norm_gradients(const AddLayerNormCall& call, std::int64_t begin, std::int64_t end,
                              float* dweight, float* dbias) {
  for (Index c = 0; c < call.width; ++c) dweight[c] = dbias[c] = 0;
  with_element(call.type, [&](auto element) {
    for (Index row = begin; row < end; ++row)
      add_layer_norm_gradient<decltype(element)>(call, row, dweight, dbias);
  });
}

}  // namespace
}  // namespace xsa::kernels::cpu
