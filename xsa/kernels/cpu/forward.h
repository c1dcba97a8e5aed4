// The forward of one instruction set: flash attention, then the exclusion as its epilogue.
//
// A task is one block of queries of one head. Queries are vector lanes: a panel holds up to
// kPanelVectors vectors of them, Q, scores and y transposed, so that maximum and sum are vertical
// and rows of K and V are read as broadcasts, without packing.
//
// The softmax is optimistic: a row's reference, what its exponents are taken from, is the largest
// score among the first few keys that it sees, and stays. So e^(s - reference) happens in the
// registers where s was summed, and nothing is ever rescaled; only where a tile's sum of weights
// passes kLargestSum, the reference is raised and the tile done again.
//
// s is summed from 0, as in the backward: both see the same bits of it. y of a block of keys is
// summed from 0 too and added to that of the blocks before, and so are runs of blocks: no sum in
// fp32 has many terms.
//
// FLOPs: 2 (D + Dv) for each visible (query, key) pair, one 2^x each, and 6 Dv a query for the
// exclusion. Bytes: q and z once; k and v once a query block (from L2 or L3).
#pragma once

#include "xsa/kernels/core/mask.h"
#include "xsa/kernels/cpu/exclude_rows.h"
#include "xsa/kernels/cpu/rows.h"
#include "xsa/kernels/cpu/segments.h"

namespace xsa::kernels::cpu {
namespace {

/// The weights of a row may sum up to it in one tile: 2^40. A row whose y then leaves fp32 is made
/// anew in double (remake_row).
constexpr float kLargestSum = 1.099511627776e12f;

/// Blocks of keys whose y and sum are added up before they join those of the runs before.
constexpr Index kRunBlocks = 16;

/// What query t sees in a pass: its sink keys in the first, if there may be any, then its near keys
/// that are not among them.
HWY_INLINE KeyRange keys_of(const Call& call, Index pass, Index b, Index t) {
  const VisibleKeys keys = visible_keys(call.mask, b, t);
  if (pass == 0 && call.mask.num_sink_keys > 0) return keys.sinks;
  return {max_of(keys.near.begin, call.mask.num_sink_keys > 0 ? keys.sinks.end : 0), keys.near.end};
}
HWY_INLINE Index passes_of(const Call& call) { return call.mask.num_sink_keys > 0 ? 2 : 1; }

/// Fills the bounds of queries [begin, begin + count) for a pass; returns the keys that any sees.
inline KeyRange fill_bounds(const Call& call, Index pass, Index b, Index begin, Index count,
                            Bounds bounds) {
  const KeyRange first = keys_of(call, pass, b, begin);
  const KeyRange last = keys_of(call, pass, b, begin + count - 1);
  // Bounds never fall and, where there are no documents, rise by one key a query at most.
  const auto is_line = [&](Index rise) {
    return rise == 0 || (rise == count - 1 && !call.mask.cu_seqlens);
  };
  const Index begin_rise = last.begin - first.begin, end_rise = last.end - first.end;
  if (is_line(begin_rise) && is_line(end_rise)) {
    const Index begin_step = begin_rise > 0, end_step = end_rise > 0;
    for (Index n = 0; n < count; ++n) {
      bounds.begin[n] = first.begin + n * begin_step;
      bounds.end[n] = first.end + n * end_step;
    }
  } else {
    for (Index n = 0; n < count; ++n) {
      const KeyRange keys = keys_of(call, pass, b, begin + n);
      bounds.begin[n] = keys.begin, bounds.end[n] = keys.end;
    }
  }
  for (Index n = count; n < padded(count); ++n)
    bounds.begin[n] = last.begin, bounds.end[n] = last.end;
  return {first.begin, last.end};
}

struct ForwardSpace {
  float *q, *y, *s, *max, *reference, *sum, *rows, *w, *scratch, *k, *v;
  float *run_y, *run_sum;  // of the runs that are over; meaningless before the first is
  Bounds bounds;
  bool has_runs = false;
  Index floats;

  ForwardSpace(const Call& call, float* memory) {
    const Index panel = call.plan.panel, block = call.plan.query_block;
    const Index dim = padded(call.sizes.head_dim), value_dim = padded(call.sizes.value_dim);
    Carver carver{memory};
    q = carver.take(block * dim);
    y = carver.take(block * value_dim);
    s = carver.take(call.plan.key_block * panel);
    max = carver.take(block);
    reference = carver.take(block);
    sum = carver.take(block);
    const bool runs = passes_of(call) * ceil_div(call.sizes.keys, call.plan.key_block) > kRunBlocks;
    run_y = carver.take(runs ? block * value_dim : 0);
    run_sum = carver.take(runs ? block : 0);
    rows = carver.take(kLanes * max_of(dim, value_dim));
    w = carver.take(kLanes * value_dim);
    scratch = carver.take(kLanes * max_of(dim, value_dim));
    k = carver.take(call.plan.key_block * packed_stride(call.sizes.head_dim));
    v = carver.take(call.plan.key_block * packed_stride(call.sizes.value_dim));
    bounds.begin = carver.take_indices(block);
    bounds.end = carver.take_indices(block);
    floats = carver.at - memory;
  }
};

/// max: the reference, -inf before the first visible key; `reference` is what is subtracted from
/// scores, 0 then.
struct Panel : Span {
  float *q, *y, *max, *reference, *sum;  // [D][width], [Dv][width], [width] each
  float *run_y, *run_sum;                // null before the first run is over
  Bounds bounds;
};

HWY_INLINE Panel panel_of(const Call& call, const ForwardSpace& space, Index queries, Index n) {
  const Span span = span_of(queries, n);
  return {span,
          space.q + span.begin * padded(call.sizes.head_dim),
          space.y + span.begin * padded(call.sizes.value_dim),
          space.max + span.begin,
          space.reference + span.begin,
          space.sum + span.begin,
          space.has_runs ? space.run_y + span.begin * padded(call.sizes.value_dim) : nullptr,
          space.has_runs ? space.run_sum + span.begin : nullptr,
          {space.bounds.begin + span.begin, space.bounds.end + span.begin}};
}

/// A copy of a panel's references.
struct References {
  float max[kPanelVectors * kLanes];
  explicit References(const Panel& panel) {
    for (Index l = 0; l < panel.width; ++l) max[l] = panel.max[l];
  }
};

/// The vector of references at `lane`.
HWY_INLINE void set_references(const Panel& panel, Index lane, Vec max) {
  hn::StoreU(max, kF, panel.max + lane);
  const auto none = hn::Eq(max, hn::Set(kF, -INFINITY));
  hn::StoreU(hn::IfThenZeroElse(none, max), kF, panel.reference + lane);
}

/// Whether all lanes have a reference.
HWY_INLINE bool is_settled(const Panel& panel) {
  bool settled = true;
  for (Index j = 0; j < panel.width; j += kLanes)
    settled =
        settled && hn::AllFalse(kF, hn::Eq(hn::LoadU(kF, panel.max + j), hn::Set(kF, -INFINITY)));
  return settled;
}

/// The first visible scores of lanes without a reference give it.
template <int R, int N>
HWY_NOINLINE void settle(const Vec (&acc)[R][N], const Panel& panel, Index lane) {
  const Vec none = hn::Set(kF, -INFINITY);
  for (int j = 0; j < N; ++j) {
    const Vec max = hn::LoadU(kF, panel.max + lane + j * kLanes);
    Vec top = none;
    for (int i = 0; i < R; ++i) top = hn::Max(acc[i][j], top);
    set_references(panel, lane + j * kLanes, hn::IfThenElse(hn::Eq(max, none), top, max));
  }
}

/// Scores of R rows, -inf where masked.
template <int R, int N>
HWY_INLINE void score_rows(Vec (&acc)[R][N], const Segment& segment, const LaneBounds& lanes,
                           Rows k, Index size, const Panel& panel, Index r) {
  const Index lane = segment.first * kLanes;
  zero_tile(acc);
  multiply_add(acc, k.data + r * k.stride, k.stride, 1, panel.q + lane, panel.width, size);
  if (segment.masked)
    for (int j = 0; j < N; ++j)
      if (segment.masked >> j & 1)
        for (int i = 0; i < R; ++i)
          acc[i][j] = hn::IfThenElse(sees(lanes, lane + j * kLanes, r + i), acc[i][j],
                                     hn::Set(kF, -INFINITY));
}

/// Weights e^(score - reference) of one segment into s, added up into sum.
template <int N>
HWY_NOINLINE void weigh_segment(const Segment& segment, const LaneBounds& lanes, Rows k, Index size,
                                const Panel& panel, bool& settled, float* s, float* sum) {
  const Index lane = segment.first * kLanes;
  by_rows<kTileRows>(segment.begin, segment.end, [&](auto rows, Index r) {
    constexpr int R = decltype(rows)::value;
    Vec acc[R][N];
    score_rows(acc, segment, lanes, k, size, panel, r);
    if (!settled) {
      settle(acc, panel, lane);
      settled = is_settled(panel);
    }
    HWY_UNROLL(8)
    for (int j = 0; j < N; ++j) {
      Vec total = hn::LoadU(kF, sum + lane + j * kLanes);
      const Vec reference = hn::LoadU(kF, panel.reference + lane + j * kLanes);
      HWY_UNROLL(8)
      for (int i = 0; i < R; ++i) {
        acc[i][j] = exp(hn::Sub(acc[i][j], reference));
        total = hn::Add(total, acc[i][j]);
      }
      hn::StoreU(total, kF, sum + lane + j * kLanes);
    }
    store_tile(acc, s + r * panel.width + lane, panel.width);
  });
}

/// The largest scores of one segment into top.
template <int N>
HWY_NOINLINE void top_of_segment(const Segment& segment, const LaneBounds& lanes, Rows k,
                                 Index size, const Panel& panel, float* top) {
  top += segment.first * kLanes;
  by_rows<4>(segment.begin, segment.end, [&](auto rows, Index r) {
    constexpr int R = decltype(rows)::value;
    Vec acc[R][N];
    score_rows(acc, segment, lanes, k, size, panel, r);
    for (int j = 0; j < N; ++j) {
      Vec largest = hn::LoadU(kF, top + j * kLanes);
      for (int i = 0; i < R; ++i) largest = hn::Max(acc[i][j], largest);
      hn::StoreU(largest, kF, top + j * kLanes);
    }
  });
}

/// y += V^T p for one segment.
template <int N>
HWY_NOINLINE void value_segment(const Segment& segment, Rows v, Index size, const float* s,
                                const Panel& panel) {
  const Index lane = segment.first * kLanes, width = panel.width;
  const float* first = v.data + segment.begin * v.stride;
  const float* p = s + segment.begin * width + lane;
  const Index steps = segment.end - segment.begin;
  const bool guarded = segment.masked && !all_finite(first, v.stride, steps, size);
  by_rows<kTileRows>(0, size, [&](auto rows, Index d) {
    constexpr int R = decltype(rows)::value;
    Vec acc[R][N];
    zero_tile(acc);
    if (guarded)
      multiply_add_guarded(acc, first + d, 1, v.stride, p, width, steps);
    else
      multiply_add(acc, first + d, 1, v.stride, p, width, steps);
    add_tile(acc, panel.y + d * width + lane, width);
  });
}

/// body(Int<N>, segment) for every segment of a tile.
template <class Body>
HWY_INLINE void for_segments(const Segments& segments, const Body& body) {
  for (int n = 0; n < segments.count; ++n)
    with_vectors<kPanelVectors>(segments.at[n].count,
                                [&](auto count) { body(count, segments.at[n]); });
}

/// Weights of a whole tile. False where a row's sum left what fp32 holds well; NaN is no number.
HWY_INLINE bool weigh_tile(const Call& call, const Segments& segments, const LaneBounds& lanes,
                           Rows k, const Panel& panel, float* s, float* sum) {
  for (Index j = 0; j < panel.width; ++j) sum[j] = 0;
  bool settled = is_settled(panel);
  for_segments(segments, [&](auto count, const Segment& segment) {
    weigh_segment<decltype(count)::value>(segment, lanes, k, call.sizes.head_dim, panel, settled, s,
                                          sum);
  });
  for (Index j = 0; j < panel.width; j += kLanes)
    if (!hn::AllTrue(kF, hn::Le(hn::LoadU(kF, sum + j), hn::Set(kF, kLargestSum)))) return false;
  return true;
}

/// Raises the reference of the rows whose sum is too large to their largest score in this tile. The
/// other rows go back to where they were `before`, so that the tile gives them the same bits again:
/// a row does not depend on its neighbours.
HWY_NOINLINE void raise_references(const Call& call, const Segments& segments,
                                   const LaneBounds& lanes, Rows k, const Panel& panel,
                                   const References& before, const float* sum) {
  float top[kPanelVectors * kLanes], factor[kPanelVectors * kLanes];
  for (Index l = 0; l < panel.width; ++l) top[l] = -INFINITY;
  for_segments(segments, [&](auto count, const Segment& segment) {
    top_of_segment<decltype(count)::value>(segment, lanes, k, call.sizes.head_dim, panel, top);
  });
  for (Index j = 0; j < panel.width; j += kLanes) {
    const Vec old = hn::LoadU(kF, before.max + j), now = hn::LoadU(kF, top + j);
    const auto raised =
        hn::And(hn::Gt(hn::LoadU(kF, sum + j), hn::Set(kF, kLargestSum)), hn::Gt(now, old));
    const Vec shrink = hn::IfThenElse(raised, exp(hn::Sub(old, now)), hn::Set(kF, 1.0f));
    hn::StoreU(shrink, kF, factor + j);
    set_references(panel, j, hn::IfThenElse(raised, now, old));
  }
  const auto scale = [&](float* rows, Index count) {
    for (Index d = 0; d < count; ++d)
      for (Index j = 0; j < panel.width; j += kLanes) {
        float* at = rows + d * panel.width + j;
        hn::StoreU(hn::Mul(hn::LoadU(kF, factor + j), hn::LoadU(kF, at)), kF, at);
      }
  };
  scale(panel.y, call.sizes.value_dim);
  scale(panel.sum, 1);
  if (!panel.run_y) return;
  scale(panel.run_y, call.sizes.value_dim);
  scale(panel.run_sum, 1);
}

/// One panel meets one block of keys: rows [key, key + rows).
HWY_INLINE void forward_tile(const Call& call, const ForwardSpace& space, const Panel& panel,
                             Rows k, Rows v, Index key, Index rows) {
  const Segments segments = segments_of(panel.bounds, key, rows, panel.vectors);
  if (segments.count == 0) return;
  const LaneBounds lanes = lane_bounds(panel.bounds, key, rows, panel.width);
  float sum[kPanelVectors * kLanes];
  const References before(panel);
  if (!weigh_tile(call, segments, lanes, k, panel, space.s, sum)) {
    raise_references(call, segments, lanes, k, panel, before, sum);
    weigh_tile(call, segments, lanes, k, panel, space.s, sum);
  }
  for (Index j = 0; j < panel.width; ++j) panel.sum[j] += sum[j];
  for_segments(segments, [&](auto count, const Segment& segment) {
    value_segment<decltype(count)::value>(segment, v, call.sizes.value_dim, space.s, panel);
  });
}

HWY_INLINE double strength_of(const Call& call, Index b, Index h, Index t) {
  return call.learned_strength ? call.learned_strength[b * call.learned_batch +
                                                       h * call.learned_head + t * call.learned_row]
                               : call.strength;
}

/// A sink logit joins the sums. `reference` becomes what y is multiplied with beside 1 / sum: not 1
/// where the sink is the new reference.
HWY_INLINE void add_sink(float sink, const Panel& panel) {
  for (Index j = 0; j < panel.width; j += kLanes) {
    const Vec before = hn::LoadU(kF, panel.max + j), logit = hn::Set(kF, sink);
    const Vec now = hn::Max(logit, before);
    // A row that sees nothing has no weight, and a sink of -inf none either.
    const auto none = hn::Eq(now, hn::Set(kF, -INFINITY));
    const Vec reference = hn::IfThenZeroElse(none, now);
    const Vec factor = exp(hn::Sub(before, reference));
    const Vec sum =
        hn::MulAdd(factor, hn::LoadU(kF, panel.sum + j), exp(hn::Sub(logit, reference)));
    hn::StoreU(factor, kF, panel.reference + j);
    hn::StoreU(sum, kF, panel.sum + j);
    hn::StoreU(now, kF, panel.max + j);
  }
}

/// Whether query t sees its own key: only padding hides it.
HWY_INLINE bool sees_own(const Call& call, Index b, Index t) {
  if (!call.mask.key_start && !call.mask.key_end) return true;
  return contains(visible_keys(call.mask, b, t), call.mask.own_offset + t);
}

/// The own values of queries [t, t + count), count <= kLanes, in place or copied to `copy`.
inline OwnRows own_rows(const Call& call, Index b, Index h, Index t, Index count, float* copy) {
  const Sizes& sizes = call.sizes;
  const Index key_head = h / (sizes.query_heads / sizes.key_heads);
  const Rows rows = whole_rows(call.v, call.type, b, key_head, call.mask.own_offset + t, count,
                               sizes.value_dim, copy);
  OwnRows own;
  for (Index r = 0; r < kLanes; ++r) {
    own.w[r] = r < count && sees_own(call, b, t + r) ? rows.data + r * rows.stride : nullptr;
    own.strength[r] = r < count ? strength_of(call, b, h, t + r) : 0;
  }
  return own;
}

/// y of one query in double, key by key, where fp32 sums have left fp32: weights relative to a
/// row's first keys, or a sum of S values near the largest number, may, though their mean does not.
/// Nothing happens where a score or a visible value is not finite, and y is so by right.
HWY_NOINLINE void remake_row(const Call& call, Index b, Index h, Index t, float* y) {
  const Sizes& sizes = call.sizes;
  const Index key_head = h / (sizes.query_heads / sizes.key_heads);
  float q[kLargestDim], x[kLargestDim];
  const auto load = [&](const Strided& array, Index head, Index row, Index size, float* to) {
    load_row(row_at(array, call.type, b, head, row), call.type, array.element, size, to);
    return all_finite(to, size, 1, size);
  };
  const auto each_key = [&](const auto& visit) {
    for (Index pass = 0; pass < passes_of(call); ++pass) {
      const KeyRange keys = keys_of(call, pass, b, t);
      for (Index key = keys.begin; key < keys.end; ++key)
        if (!visit(key)) return false;
    }
    return true;
  };
  if (!load(call.q, h, t, sizes.head_dim, q) ||
      !each_key([&](Index key) { return load(call.v, key_head, key, sizes.value_dim, x); }))
    return;

  double max = call.sink_logits ? call.sink_logits[h] : -INFINITY, sum = 1, sums[kLargestDim];
  if (max == -INFINITY) sum = 0;
  for (Index d = 0; d < sizes.value_dim; ++d) sums[d] = 0;
  const bool whole = each_key([&](Index key) {
    if (!load(call.k, key_head, key, sizes.head_dim, x)) return false;
    const double s = call.scale * dot_double(q, x, sizes.head_dim);
    if (s > max) {
      const double shrink = std::exp(max - s);
      for (Index d = 0; d < sizes.value_dim; ++d) sums[d] *= shrink;
      sum *= shrink, max = s;
    }
    const double p = std::exp(s - max);
    load(call.v, key_head, key, sizes.value_dim, x);
    for (Index d = 0; d < sizes.value_dim; ++d) sums[d] += p * x[d];
    sum += p;
    return true;
  });
  if (!whole || sum == 0) return;
  for (Index d = 0; d < sizes.value_dim; ++d) y[d] = static_cast<float>(sums[d] / sum);
}

/// The run of blocks that a panel has met is over: y and sum join those of the runs before.
HWY_NOINLINE void close_run(const Call& call, const Panel& panel, bool is_first) {
  const auto close = [&](float* rows, float* runs, Index floats) {
    for (Index n = 0; n < floats; n += kLanes) {
      const Vec run = hn::LoadU(kF, rows + n);
      hn::StoreU(is_first ? run : hn::Add(hn::LoadU(kF, runs + n), run), kF, runs + n);
      hn::StoreU(hn::Zero(kF), kF, rows + n);
    }
  };
  close(panel.y, panel.run_y, call.sizes.value_dim * panel.width);
  close(panel.sum, panel.run_sum, panel.width);
}

/// y and sum of all runs.
HWY_NOINLINE void add_runs(const Call& call, const Panel& panel) {
  const auto add = [](float* rows, const float* runs, Index floats) {
    for (Index n = 0; n < floats; n += kLanes)
      hn::StoreU(hn::Add(hn::LoadU(kF, runs + n), hn::LoadU(kF, rows + n)), kF, rows + n);
  };
  add(panel.y, panel.run_y, call.sizes.value_dim * panel.width);
  add(panel.sum, panel.run_sum, panel.width);
}

/// y, max and sum of a panel to z, lse and c. `t`: its first query.
inline void finish_panel(const Call& call, const ForwardSpace& space, const Panel& panel, Index b,
                         Index h, Index t) {
  const Sizes& sizes = call.sizes;
  if (panel.run_y) add_runs(call, panel);
  if (call.sink_logits)
    add_sink(call.sink_logits[h], panel);
  else
    for (Index n = 0; n < panel.width; ++n) panel.reference[n] = 1;
  const bool direct = in_place(call.z, call.type, sizes.value_dim);
  for (Index lane = 0; lane < panel.count; lane += kLanes) {
    const Index count = min_of(kLanes, panel.count - lane), first = t + lane;
    const Vec sum = hn::LoadU(kF, panel.sum + lane);
    const Vec inverse = hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(kF)),
                                           hn::Div(hn::LoadU(kF, panel.reference + lane), sum));
    char* z = row_at(call.z, call.type, b, h, first);
    float* y = direct ? reinterpret_cast<float*>(z) : space.rows;
    const Index stride = direct ? call.z.row : padded(sizes.value_dim);
    panel_to_rows(panel.y + lane, panel.width, count, sizes.value_dim, inverse, space.scratch, y,
                  stride);
    const Index at = (b * sizes.query_heads + h) * sizes.queries + first;
    exclude_rows(y, stride, own_rows(call, b, h, first, count, space.w), count,
                 padded(sizes.value_dim), call.eps, call.c + at,
                 [&](Index r) { remake_row(call, b, h, first + r, y + r * stride); });
    for (Index r = 0; r < count; ++r)
      call.lse[at + r] = log_sum_exp(SoftmaxState<float>{panel.max[lane + r], panel.sum[lane + r]});
    if (direct) continue;
    for (Index r = 0; r < count; ++r)
      store_row(y + r * stride, z + r * call.z.row * element_size(call.type), call.type,
                call.z.element, sizes.value_dim);
  }
}

/// Q of a panel, transposed, times scale, into q [D][width].
inline void queries_to_panel(const Call& call, const Span& span, Index b, Index h, Index t,
                             float* rows, float* scratch, float* q) {
  const float scale = static_cast<float>(call.scale);
  for (Index lane = 0; lane < span.count; lane += kLanes) {
    const Index count = min_of(kLanes, span.count - lane);
    rows_to_panel(whole_rows(call.q, call.type, b, h, t + lane, count, call.sizes.head_dim, rows),
                  count, call.sizes.head_dim, scale, scratch, q + lane, span.width);
  }
}

/// Q of a panel times scale; an empty softmax.
inline void start_panel(const Call& call, const ForwardSpace& space, const Panel& panel, Index b,
                        Index h, Index t) {
  queries_to_panel(call, panel, b, h, t, space.rows, space.scratch, panel.q);
  for (Index n = 0; n < padded(call.sizes.value_dim) * panel.width; ++n) panel.y[n] = 0;
  for (Index n = 0; n < panel.width; ++n)
    panel.max[n] = -INFINITY, panel.reference[n] = panel.sum[n] = 0;
}

void forward_task(const Call& call, std::int64_t task, float* workspace) {
  const Sizes& sizes = call.sizes;
  const Plan& plan = call.plan;
  ForwardSpace space(call, workspace);
  const Index head = task / plan.query_blocks;
  const Index block = plan.query_blocks - 1 - task % plan.query_blocks;
  const Index b = head / sizes.query_heads, h = head % sizes.query_heads;
  const Index key_head = h / (sizes.query_heads / sizes.key_heads);
  const Index begin = block * plan.query_block;
  const Index queries = min_of(plan.query_block, sizes.queries - begin);
  const Index panels = panels_of(queries);

  for (Index n = 0; n < panels; ++n) {
    const Panel panel = panel_of(call, space, queries, n);
    start_panel(call, space, panel, b, h, begin + panel.begin);
  }
  Index blocks = 0;  // of the current run
  for (Index pass = 0; pass < passes_of(call); ++pass) {
    const KeyRange keys = fill_bounds(call, pass, b, begin, queries, space.bounds);
    for (Index key = keys.begin; key < keys.end; key += plan.key_block) {
      if (blocks++ == kRunBlocks) {
        const bool is_first = !space.has_runs;
        space.has_runs = true;
        for (Index n = 0; n < panels; ++n)
          close_run(call, panel_of(call, space, queries, n), is_first);
        blocks = 1;
      }
      const Index rows = min_of(plan.key_block, keys.end - key);
      const Rows k = rows_of(call.k, call.type, b, key_head, key, rows, sizes.head_dim, space.k);
      const Rows v = rows_of(call.v, call.type, b, key_head, key, rows, sizes.value_dim, space.v);
      for (Index n = 0; n < panels; ++n)
        forward_tile(call, space, panel_of(call, space, queries, n), k, v, key, rows);
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
