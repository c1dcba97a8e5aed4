// The exclusion alone, of one instruction set: rows in, rows out, one pass over memory.
//
// A unit is one row of v with the rows of y of its group that own it: w is read once for all of
// them, and its gradient is the sum over them, in the order of their heads, by whoever has the
// unit. So no result depends on how units are handed out.
//
// FLOPs: 6 Dv a row forward, 12 Dv backward. Bytes: every row once.
#pragma once

#include "xsa/kernels/cpu/exclude_row.h"
#include "xsa/kernels/cpu/steps.h"

namespace xsa::kernels::cpu {
namespace {

template <class E>
using StoredOf = typename E::Stored;

template <class E>
HWY_INLINE StoredOf<E>* stored_row(const Strided& array, Index b, Index h, Index t) {
  return reinterpret_cast<StoredOf<E>*>(array.data) + b * array.batch + h * array.head +
         t * array.row;
}
/// The row where it lies, or a dense copy where its elements lie apart.
template <class E>
HWY_INLINE const StoredOf<E>* dense(const Strided& array, const StoredOf<E>* row, Index size,
                                    StoredOf<E>* copy) {
  if (array.element == 1) return row;
  for (Index d = 0; d < size; ++d) copy[d] = row[d * array.element];
  return copy;
}
/// The way back, for a row that was written to `copy`.
template <class E>
HWY_INLINE void scatter(const Strided& array, const StoredOf<E>* copy, Index size,
                        StoredOf<E>* row) {
  if (array.element == 1) return;
  for (Index d = 0; d < size; ++d) row[d * array.element] = copy[d];
}

/// Dense copies of rows, the sum of dw, and fp32 rows for the rare row.
template <class E>
struct ExcludeSpace {
  StoredOf<E>*x, *z, *w, *out, *dw;
  float* dw_sum;
  float *wide_x, *wide_z, *wide_w, *wide_dw;
  Index floats;

  ExcludeSpace(const ExcludeCall& call, float* memory) {
    const Index row = whole_steps<E>(call.value_dim);
    Carver carver{memory};
    const auto take = [&] { return reinterpret_cast<StoredOf<E>*>(carver.take(row)); };
    x = take(), z = take(), w = take(), out = take(), dw = take();
    dw_sum = carver.take(row);
    wide_x = carver.take(row), wide_z = carver.take(row);
    wide_w = carver.take(row), wide_dw = carver.take(row);
    floats = carver.at - memory;
  }
};

HWY_INLINE double strength_of(const ExcludeCall& call, Index b, Index h, Index t) {
  return call.learned_strength ? call.learned_strength[b * call.learned_batch +
                                                       h * call.learned_head + t * call.learned_row]
                               : call.strength;
}

/// Visits units [begin, end) of `rows` rows a key/value head, in the order of memory: body(b,
/// key/value head, row).
template <class Body>
HWY_INLINE void for_units(const ExcludeCall& call, Index rows, Index begin, Index end,
                          const Body& body) {
  const Index outer = call.heads_in_tokens ? rows : call.key_heads;
  const Index inner = call.heads_in_tokens ? call.key_heads : rows;
  Index i = begin % inner, o = begin / inner % outer, b = begin / inner / outer;
  for (Index n = begin; n < end; ++n) {
    body(b, call.heads_in_tokens ? i : o, call.heads_in_tokens ? o : i);
    if (++i == inner) {
      i = 0;
      if (++o == outer) o = 0, ++b;
    }
  }
}

struct RowDots {
  float with_w, ww;
};

/// x . w and w . w.
template <class E, class Size>
HWY_INLINE RowDots row_dots(const StoredOf<E>* x, const StoredOf<E>* w, Size size) {
  Vec xw = hn::Zero(kF), ww = hn::Zero(kF);
  by_steps<E>(size, [&](Index d, auto part) {
    const auto from_x = load_step<E>(x + d, part), from_w = load_step<E>(w + d, part);
    HWY_UNROLL(2)
    for (int n = 0; n < Steps<E>::kVectors; ++n) {
      xw = hn::MulAdd(from_x.at[n], from_w.at[n], xw);
      ww = hn::MulAdd(from_w.at[n], from_w.at[n], ww);
    }
  });
  return {hn::GetLane(hn::SumOfLanes(kF, xw)), hn::GetLane(hn::SumOfLanes(kF, ww))};
}

/// are_ordinary_sums (exclude_row.h) of a row as it is stored.
template <class E>
HWY_INLINE bool are_ordinary(const RowDots& dots, const StoredOf<E>* x, Index size) {
  return are_ordinary_sums(dots.with_w, dots.ww, [&] {
    for (Index d = 0; d < size; ++d)
      if (E::get(x[d]) != 0) return false;
    return true;
  });
}

// ---- forward

/// One row that fp32 sums cannot hold, or that is not finite.
template <class E>
HWY_NOINLINE float forward_rare_row(const ExcludeCall& call, const ExcludeSpace<E>& space,
                                    const StoredOf<E>* y, const StoredOf<E>* w, double strength,
                                    StoredOf<E>* z) {
  const Index size = call.value_dim;
  load_row(reinterpret_cast<const char*>(y), call.type, 1, size, space.wide_x);
  load_row(reinterpret_cast<const char*>(w), call.type, 1, size, space.wide_w);
  const float c = exclude_row(space.wide_x, space.wide_w, size, strength, call.eps);
  store_row(space.wide_x, reinterpret_cast<char*>(z), call.type, 1, size);
  return c;
}

/// z of one row; returns c.
template <class E, class Size>
HWY_INLINE float forward_row(const ExcludeCall& call, const ExcludeSpace<E>& space,
                             const StoredOf<E>* y, const StoredOf<E>* w, double strength, Size size,
                             StoredOf<E>* z) {
  const RowDots dots = row_dots<E>(y, w, size);
  const float c = static_cast<float>(exclusion_coefficient(dots.with_w, dots.ww, call.eps));
  const float ac = static_cast<float>(strength) * c;
  if (!are_ordinary<E>(dots, y, size) || !is_ordinary_factor(ac))
    return forward_rare_row<E>(call, space, y, w, strength, z);
  if (strength == 0) {
    for (Index d = 0; d < size; ++d) z[d] = y[d];
    return c;
  }
  const Vec factor = hn::Set(kF, ac);
  const auto one = [&](Vec from_y, Vec from_w) { return hn::NegMulAdd(factor, from_w, from_y); };
  by_steps<E>(size, [&](Index d, auto part) {
    store_step_no_nan<E>(map(one, load_step<E>(y + d, part), load_step<E>(w + d, part)), z + d,
                         part);
  });
  return c;
}

template <class E, class Size>
HWY_INLINE void forward_units(const ExcludeCall& call, Index begin, Index end, float* workspace,
                              Size size) {
  const ExcludeSpace<E> space(call, workspace);
  const Index group = call.query_heads / call.key_heads;
  for_units(call, call.queries, begin, end, [&](Index b, Index key_head, Index t) {
    const auto* w =
        dense<E>(call.v, stored_row<E>(call.v, b, key_head, call.own_offset + t), size, space.w);
    for (Index h = key_head * group; h < (key_head + 1) * group; ++h) {
      const auto* y = dense<E>(call.y, stored_row<E>(call.y, b, h, t), size, space.x);
      auto* place = stored_row<E>(call.z, b, h, t);
      auto* z = call.z.element == 1 ? place : space.out;
      call.c[(b * call.query_heads + h) * call.queries + t] =
          forward_row<E>(call, space, y, w, strength_of(call, b, h, t), size, z);
      scatter<E>(call.z, z, size, place);
    }
  });
}

// ---- backward

/// Where the direct gradient of w goes: added to a sum, whose floats lie as Steps places them, ...
template <class E>
struct AddToSum {
  using Step = Vectors<Steps<E>::kVectors>;
  float* sum;
  HWY_INLINE Step before(Index d) const {
    Step step;
    load_floats(step, sum + d);
    return step;
  }
  template <class P>
  HWY_INLINE void write(const Step& value, Index d, P) const {
    store_floats(value, sum + d);
  }
  HWY_INLINE void put(float value, Index d) const { sum[Steps<E>::place(d)] += value; }
};
/// ... or written, where the row is the only one.
template <class E>
struct WriteRow {
  using Step = Vectors<Steps<E>::kVectors>;
  StoredOf<E>* row;
  HWY_INLINE Step before(Index) const {
    Step step;
    for (Vec& vector : step.at) vector = hn::Zero(kF);
    return step;
  }
  template <class P>
  HWY_INLINE void write(const Step& value, Index d, P part) const {
    store_step<E>(value, row + d, part);
  }
  HWY_INLINE void put(float value, Index d) const { row[d] = E::put(value); }
};

template <class E>
struct ExcludedRow {
  const StoredOf<E>*dz, *z, *w;
  StoredOf<E>* dy;
  double strength, c;
};

template <class E, class Dw>
HWY_NOINLINE float backward_rare_row(const ExcludeCall& call, const ExcludeSpace<E>& space,
                                     const ExcludedRow<E>& row, const Dw& dw) {
  const Index size = call.value_dim;
  load_row(reinterpret_cast<const char*>(row.dz), call.type, 1, size, space.wide_x);
  load_row(reinterpret_cast<const char*>(row.z), call.type, 1, size, space.wide_z);
  load_row(reinterpret_cast<const char*>(row.w), call.type, 1, size, space.wide_w);
  for (Index d = 0; d < padded(size); ++d) space.wide_dw[d] = 0;
  const float da = exclude_row_backward(space.wide_x, space.wide_z, space.wide_w, size,
                                        row.strength, row.c, call.eps, space.wide_dw);
  store_row(space.wide_x, reinterpret_cast<char*>(row.dy), call.type, 1, size);
  for (Index d = 0; d < size; ++d) dw.put(space.wide_dw[d], d);
  return da;
}

/// The gradients of one row; that of w goes to `dw`. Returns da.
template <class E, class Dw, class Size>
HWY_INLINE float backward_row(const ExcludeCall& call, const ExcludeSpace<E>& space,
                              const ExcludedRow<E>& row, Size size, const Dw& dw) {
  const RowDots dots = row_dots<E>(row.dz, row.w, size);
  const ExclusionGradient gradient =
      exclusion_gradient(row.strength, row.c, dots.with_w, dots.ww, call.eps);
  const GradientFactors factors(gradient);
  if (!are_ordinary<E>(dots, row.dz, size) || !factors.are_ordinary())
    return backward_rare_row<E>(call, space, row, dw);
  const auto of_w = [&](Vec sum, Vec dz, Vec z, Vec w) {
    return add_to_dw(factors, sum, dz, z, w);
  };
  const auto of_y = [&](Vec dz, Vec w) { return hn::NegMulAdd(hn::Set(kF, factors.dy_w), w, dz); };
  by_steps<E>(size, [&](Index d, auto part) {
    const auto dz = load_step<E>(row.dz + d, part), w = load_step<E>(row.w + d, part);
    dw.write(map(of_w, dw.before(d), dz, load_step<E>(row.z + d, part), w), d, part);
    store_step_no_nan<E>(map(of_y, dz, w), row.dy + d, part);
  });
  return static_cast<float>(gradient.dstrength);
}

template <class E, class Size>
HWY_INLINE void backward_units(const ExcludeCall& call, Index begin, Index end, float* workspace,
                               Size size) {
  const ExcludeSpace<E> space(call, workspace);
  const Index group = call.query_heads / call.key_heads;
  const bool excludes = call.learned_strength || call.strength != 0;
  for_units(call, call.keys, begin, end, [&](Index b, Index key_head, Index s) {
    const Index t = s - call.own_offset;
    const bool is_owned = t >= 0 && t < call.queries;
    auto* dw_place = stored_row<E>(call.dv, b, key_head, s);
    auto* dw = call.dv.element == 1 ? dw_place : space.dw;
    const auto* w = dense<E>(call.v, stored_row<E>(call.v, b, key_head, s), size, space.w);
    const auto one_row = [&](Index h, const auto& to) {
      const auto* dz = dense<E>(call.dz, stored_row<E>(call.dz, b, h, t), size, space.x);
      const auto* z = dense<E>(call.z, stored_row<E>(call.z, b, h, t), size, space.z);
      auto* place = stored_row<E>(call.dy, b, h, t);
      auto* dy = call.dy.element == 1 ? place : space.out;
      const Index at = (b * call.query_heads + h) * call.queries + t;
      if (excludes) {
        const ExcludedRow<E> row{dz, z, w, dy, strength_of(call, b, h, t), call.c[at]};
        const float da = backward_row<E>(call, space, row, size, to);
        if (call.dlearned_strength) call.dlearned_strength[at] = da;
      } else {
        for (Index d = 0; d < size; ++d) dy[d] = dz[d];
      }
      scatter<E>(call.dy, dy, size, place);
    };
    if (is_owned && excludes && group == 1) {
      one_row(key_head, WriteRow<E>{dw});
    } else {
      for (Index d = 0; d < whole_steps<E>(size); ++d) space.dw_sum[d] = 0;
      if (is_owned)
        for (Index h = key_head * group; h < (key_head + 1) * group; ++h)
          one_row(h, AddToSum<E>{space.dw_sum});
      by_steps<E>(size, [&](Index d, auto part) {
        store_step<E>(AddToSum<E>{space.dw_sum}.before(d), dw + d, part);
      });
    }
    scatter<E>(call.dv, dw, size, dw_place);
  });
}

// ---- by type and size

/// A size that the compiler knows.
template <Index N>
struct FixedSize {
  HWY_INLINE operator Index() const { return N; }
};

/// body(E(), size), compiled for the usual sizes by themselves.
template <class Body>
HWY_INLINE void with_rows_of(const ExcludeCall& call, const Body& body) {
  with_element(call.type, [&](auto element) {
    switch (call.value_dim) {
      case 64:
        return body(element, FixedSize<64>());
      case 128:
        return body(element, FixedSize<128>());
      default:
        return body(element, call.value_dim);
    }
  });
}

void exclude_forward(const ExcludeCall& call, std::int64_t begin, std::int64_t end,
                     float* workspace) {
  with_rows_of(call, [&](auto element, auto size) {
    forward_units<decltype(element)>(call, begin, end, workspace, size);
  });
}

void exclude_backward(const ExcludeCall& call, std::int64_t begin, std::int64_t end,
                      float* workspace) {
  with_rows_of(call, [&](auto element, auto size) {
    backward_units<decltype(element)>(call, begin, end, workspace, size);
  });
}

std::int64_t exclude_floats(const ExcludeCall& call) {
  return max_of(ExcludeSpace<Float32>(call, nullptr).floats,
                ExcludeSpace<BFloat16>(call, nullptr).floats);
}

constexpr ExcludeKernels exclude_kernels() {
  return {exclude_floats, exclude_forward, exclude_backward};
}

}  // namespace
}  // namespace xsa::kernels::cpu
