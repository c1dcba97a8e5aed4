// The forward of one instruction set: flash attention, then the exclusion as its epilogue.
//
// A task is one block of queries of one head. Queries are vector lanes: a panel holds up to
// kPanelVectors vectors of them, Q, scores and y transposed, so that row maximum and sum are
// vertical and rows of K and V are read as broadcasts, without packing.
//
// FLOPs: 2 (D + Dv) for each visible (query, key) pair, one 2^x each, and 6 Dv a query for the
// exclusion. Bytes: q and z once; k and v once a query block (from L2 or L3).
#pragma once

#include <cmath>

#include "xsa/kernels/cpu/exclude_row.h"

namespace xsa::kernels::cpu {
namespace {

struct ForwardSpace {
  float *q, *y, *s, *max, *sum, *rows, *w, *quads, *k, *v;
  Index floats;

  ForwardSpace(const Call& call, float* memory) {
    const Index panel = call.plan.panel, block = call.plan.query_block;
    const Index dim = padded(call.sizes.head_dim), value_dim = padded(call.sizes.value_dim);
    Carver carver{memory};
    q = carver.take(block * dim);
    y = carver.take(block * value_dim);
    s = carver.take(call.plan.key_block * panel);
    max = carver.take(block);
    sum = carver.take(block);
    rows = carver.take(panel * max_of(dim, value_dim));
    w = carver.take(value_dim);
    quads = carver.take(kLanes * max_of(dim, value_dim));
    k = carver.take(call.plan.key_block * packed_stride(call.sizes.head_dim));
    v = carver.take(call.plan.key_block * packed_stride(call.sizes.value_dim));
    floats = carver.at - memory;
  }
};

struct Panel : Span {
  float *q, *y, *max, *sum;  // [D][width], [Dv][width], [width], [width]
};

HWY_INLINE Panel panel_of(const Call& call, const ForwardSpace& space, Index queries, Index n) {
  const Span span = span_of(queries, n);
  return {span, space.q + span.begin * padded(call.sizes.head_dim),
          space.y + span.begin * padded(call.sizes.value_dim), space.max + span.begin,
          space.sum + span.begin};
}

/// Scores of one segment into s [rows][width], and their maxima into max. All pointers are at the
/// segment's first vector.
template <int N>
HWY_NOINLINE void score_segment(const Segment& segment, Rows k, Index size, const float* q,
                                Index width, float* s, float* max) {
  Vec top[N];
  for (int j = 0; j < N; ++j) top[j] = hn::LoadU(kF, max + j * kLanes);
  by_rows<kTileRows>(segment.begin, segment.end, [&](auto rows, Index r) {
    constexpr int R = decltype(rows)::value;
    Vec acc[R][N];
    zero_tile(acc);
    multiply_add(acc, k.data + r * k.stride, k.stride, 1, q, width, size);
    if (segment.masked)
      for (int i = 0; i < R; ++i)
        acc[i][0] = hn::IfThenElse(sees(segment, r + i), acc[i][0], hn::Set(kF, -INFINITY));
    HWY_UNROLL(8)
    for (int i = 0; i < R; ++i)
      for (int j = 0; j < N; ++j) top[j] = hn::Max(acc[i][j], top[j]);
    store_tile(acc, s + r * width, width);
  });
  for (int j = 0; j < N; ++j) hn::StoreU(top[j], kF, max + j * kLanes);
}

/// s = 2^(s - max), added up into sum.
template <int N>
HWY_NOINLINE void exponentiate_segment(const Segment& segment, Index width, float* s,
                                       const float* max, float* sum) {
  Vec total[N], reference[N];
  for (int j = 0; j < N; ++j) {
    total[j] = hn::LoadU(kF, sum + j * kLanes);
    const Vec top = hn::LoadU(kF, max + j * kLanes);
    reference[j] = hn::IfThenZeroElse(hn::Eq(top, hn::Set(kF, -INFINITY)), top);
  }
  for (Index r = segment.begin; r < segment.end; ++r)
    for (int j = 0; j < N; ++j) {
      float* at = s + r * width + j * kLanes;
      const Vec p = exp2(hn::Sub(hn::LoadU(kF, at), reference[j]));
      total[j] = hn::Add(total[j], p);
      hn::StoreU(p, kF, at);
    }
  for (int j = 0; j < N; ++j) hn::StoreU(total[j], kF, sum + j * kLanes);
}

/// y = rescale * y + V^T p for one segment.
template <int N>
HWY_NOINLINE void value_segment(const Segment& segment, Rows v, Index size, const float* s,
                                Index width, const float* rescale, float* y) {
  Vec factor[N];
  for (int j = 0; j < N; ++j)
    factor[j] = rescale ? hn::LoadU(kF, rescale + j * kLanes) : hn::Set(kF, 1.0f);
  const float* first = v.data + segment.begin * v.stride;
  const Index steps = segment.end - segment.begin;
  const bool guarded = segment.masked && !all_finite(first, v.stride, steps, size);
  by_rows<kTileRows>(0, size, [&](auto rows, Index d) {
    constexpr int R = decltype(rows)::value;
    Vec acc[R][N];
    load_tile(acc, y + d * width, width);
    HWY_UNROLL(8)
    for (int i = 0; i < R; ++i)
      for (int j = 0; j < N; ++j) acc[i][j] = hn::Mul(factor[j], acc[i][j]);
    const float* p = s + segment.begin * width;
    if (guarded)
      multiply_add_guarded(acc, first + d, 1, v.stride, p, width, steps);
    else
      multiply_add(acc, first + d, 1, v.stride, p, width, steps);
    store_tile(acc, y + d * width, width);
  });
}

/// New maximum in, old maximum and sum in memory: what y and sum shrink by. Exactly 1 where the
/// maximum stays.
HWY_INLINE void rescale_sums(Index vectors, const float* new_max, float* max, float* sum,
                             float* rescale) {
  for (Index j = 0; j < vectors * kLanes; j += kLanes) {
    const Vec before = hn::LoadU(kF, max + j), now = hn::LoadU(kF, new_max + j);
    const Vec one = hn::Set(kF, 1.0f);
    const Vec factor = hn::IfThenElse(hn::Eq(before, now), one, exp2(hn::Sub(before, now)));
    hn::StoreU(factor, kF, rescale + j);
    hn::StoreU(hn::Mul(factor, hn::LoadU(kF, sum + j)), kF, sum + j);
    hn::StoreU(now, kF, max + j);
  }
}

/// One panel meets one block of keys. `own`: the own key of its first query, from the block on.
HWY_INLINE void forward_tile(const Call& call, const ForwardSpace& space, const Panel& panel,
                             Rows k, Rows v, Index rows, Index own) {
  const Segments segments = segments_of(call.sizes.is_causal, rows, own, panel.vectors);
  float new_max[kPanelVectors * kLanes], rescale[kPanelVectors * kLanes];
  __builtin_memcpy(new_max, panel.max, panel.width * sizeof(float));
  for (int n = 0; n < segments.count; ++n) {
    const Segment& segment = segments.at[n];
    const Index lane = segment.first * kLanes;
    with_vectors<kPanelVectors>(panel.vectors - segment.first, [&](auto vectors) {
      score_segment<decltype(vectors)::value>(segment, k, call.sizes.head_dim, panel.q + lane,
                                              panel.width, space.s + lane, new_max + lane);
    });
  }
  rescale_sums(panel.vectors, new_max, panel.max, panel.sum, rescale);
  for (int n = 0; n < segments.count; ++n) {
    const Segment& segment = segments.at[n];
    const Index lane = segment.first * kLanes;
    // The first segment has every vector that a later one has.
    with_vectors<kPanelVectors>(panel.vectors - segment.first, [&](auto vectors) {
      constexpr int N = decltype(vectors)::value;
      exponentiate_segment<N>(segment, panel.width, space.s + lane, panel.max + lane,
                              panel.sum + lane);
      value_segment<N>(segment, v, call.sizes.value_dim, space.s + lane, panel.width,
                       n == 0 ? rescale + lane : nullptr, panel.y + lane);
    });
  }
}

HWY_INLINE double strength_of(const Call& call, Index b, Index h, Index t) {
  return call.learned_strength ? call.learned_strength[b * call.learned_batch +
                                                       h * call.learned_head + t * call.learned_row]
                               : call.strength;
}

/// y, max and sum of a panel to z, lse and c. `t`: its first query.
inline void finish_panel(const Call& call, const ForwardSpace& space, const Panel& panel, Index b,
                         Index h, Index t) {
  const Sizes& sizes = call.sizes;
  const Index stride = padded(sizes.value_dim);
  const Index key_head = h / (sizes.query_heads / sizes.key_heads);
  for (Index j = 0; j * kLanes < panel.count; ++j) {
    const Vec sum = hn::LoadU(kF, panel.sum + j * kLanes);
    const Vec inverse =
        hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(kF)), hn::Div(hn::Set(kF, 1.0f), sum));
    panel_to_rows(panel.y + j * kLanes, panel.width, min_of(kLanes, panel.count - j * kLanes),
                  sizes.value_dim, inverse, space.quads, space.rows + j * kLanes * stride, stride);
  }
  for (Index r = 0; r < panel.count; ++r) {
    float* y = space.rows + r * stride;
    for (Index d = sizes.value_dim; d < stride; ++d) y[d] = 0;
    load_row(row_at(call.v, call.type, b, key_head, sizes.own_offset + t + r), call.type,
             call.v.element, sizes.value_dim, space.w);
    const Index at = (b * sizes.query_heads + h) * sizes.queries + t + r;
    call.c[at] = exclude_row(y, space.w, sizes.value_dim, strength_of(call, b, h, t + r), call.eps);
    call.lse[at] = log_sum_exp(SoftmaxState<float>{panel.max[r], panel.sum[r]});
    store_row(y, 1.0f, row_at(call.z, call.type, b, h, t + r), call.type, call.z.element,
              sizes.value_dim);
  }
}

/// Q of a panel, transposed, times scale log2(e); an empty softmax.
inline void start_panel(const Call& call, const ForwardSpace& space, const Panel& panel, Index b,
                        Index h, Index t) {
  const Index stride = padded(call.sizes.head_dim);
  for (Index r = 0; r < panel.count; ++r)
    load_row(row_at(call.q, call.type, b, h, t + r), call.type, call.q.element, call.sizes.head_dim,
             space.rows + r * stride);
  for (Index j = 0; j < panel.vectors; ++j)
    rows_to_panel(space.rows + j * kLanes * stride, stride,
                  min_of(kLanes, panel.count - j * kLanes), call.sizes.head_dim,
                  static_cast<float>(call.scale * kLog2E), space.quads, panel.q + j * kLanes,
                  panel.width);
  for (Index n = 0; n < padded(call.sizes.value_dim) * panel.width; ++n) panel.y[n] = 0;
  for (Index n = 0; n < panel.width; ++n) panel.max[n] = -INFINITY, panel.sum[n] = 0;
}

void forward_task(const Call& call, std::int64_t task, float* workspace) {
  const Sizes& sizes = call.sizes;
  const Plan& plan = call.plan;
  const ForwardSpace space(call, workspace);
  const Index heads = sizes.batch * sizes.query_heads;
  const Index block = plan.query_blocks - 1 - task / heads;  // the heaviest first
  const Index b = task % heads / sizes.query_heads, h = task % sizes.query_heads;
  const Index key_head = h / (sizes.query_heads / sizes.key_heads);
  const Index begin = block * plan.query_block;
  const Index queries = min_of(plan.query_block, sizes.queries - begin);
  const Index panels = panels_of(queries);

  for (Index n = 0; n < panels; ++n) {
    const Panel panel = panel_of(call, space, queries, n);
    start_panel(call, space, panel, b, h, begin + panel.begin);
  }
  const Index keys = visible_keys_end(sizes, begin + queries);
  for (Index key = 0; key < keys; key += plan.key_block) {
    const Index block_rows = min_of(plan.key_block, keys - key);
    const Rows k =
        rows_of(call.k, call.type, b, key_head, key, block_rows, sizes.head_dim, space.k);
    const Rows v =
        rows_of(call.v, call.type, b, key_head, key, block_rows, sizes.value_dim, space.v);
    for (Index n = 0; n < panels; ++n) {
      const Panel panel = panel_of(call, space, queries, n);
      const Index first = begin + panel.begin;
      const Index rows = min_of(block_rows, visible_keys_end(sizes, first + panel.count) - key);
      if (rows > 0) forward_tile(call, space, panel, k, v, rows, sizes.own_offset + first - key);
    }
  }
  for (Index n = 0; n < panels; ++n) {
    const Panel panel = panel_of(call, space, queries, n);
    finish_panel(call, space, panel, b, h, begin + panel.begin);
  }
}

std::int64_t forward_floats(const Call& call) { return ForwardSpace(call, nullptr).floats; }

}  // namespace
}  // namespace xsa::kernels::cpu
