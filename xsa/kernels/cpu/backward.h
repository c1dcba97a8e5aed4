// The backward of one instruction set: the exclusion's gradients as prologue, then flash
// attention's backward with dy in dz's place.
//
// A task is some parts of one key/value head, a part being a run of keys, met by all blocks of
// queries of the heads in its group, one after the other. P^T and dS^T of a block of keys are made
// panel by panel and stay in L2. dK and dV of its keys are the task's own, summed in place; dQ of a
// block of queries is summed part by part, and a task goes on from the total that the one before
// left.
//
// FLOPs: 2 (3 D + 2 Dv) for each visible (query, key) pair, one 2^x each, and 12 Dv a query for the
// exclusion. Bytes: q, z, dz, dq once a part; k, v and the sums of dk, dv once a query block.
#pragma once

#include <sched.h>

#include "xsa/kernels/cpu/decode.h"

namespace xsa::kernels::cpu {
namespace {

/// Whether the forward was the decode path's, whose scores are rounded otherwise than a panel's.
HWY_INLINE bool scores_as_decoded(const Call& call) { return call.sizes.queries <= kDecodeQueries; }

struct BackwardSpace {
  float *q, *dy;                  // panels [D][width], [Dv][width]; dy times scale
  float *q_copy, *dy_rows;        // rows: q where its own cannot be used, dy
  float *dq, *dq_total, *p, *ds;  // panels [D][width], [keys][width], [keys][width]
  float *lse, *delta;             // [queries]; -delta scale: what sums of dP start from
  float *rows, *z, *w, *dz, *scratch, *k, *v;
  float *decode_q, *decode_k, *decode_s;  // of few queries: rows times scale, rows, scores
  Bounds bounds;
  KeyRange* rows_of_panel;  // key rows of the current block of keys that panel n sees
  Index floats;

  BackwardSpace(const Call& call, float* memory) {
    const Index block = call.plan.query_block;
    const Index dim = padded(call.sizes.head_dim), value_dim = padded(call.sizes.value_dim);
    Carver carver{memory};
    q = carver.take(block * dim);
    dy = carver.take(block * value_dim);
    q_copy = carver.take(block * packed_stride(call.sizes.head_dim));
    dy_rows = carver.take(block * packed_stride(call.sizes.value_dim));
    dq = carver.take(block * dim);
    dq_total = carver.take(block * dim);
    p = carver.take(block * call.plan.key_block);
    ds = carver.take(block * call.plan.key_block);
    lse = carver.take(block);
    delta = carver.take(block);
    rows = carver.take(kLanes * max_of(dim, value_dim));
    z = carver.take(kLanes * value_dim);
    w = carver.take(kLanes * value_dim);
    dz = carver.take(kLanes * value_dim);
    scratch = carver.take(kLanes * max_of(dim, value_dim));
    k = carver.take(call.plan.key_block * packed_stride(call.sizes.head_dim));
    v = carver.take(call.plan.key_block * packed_stride(call.sizes.value_dim));
    const bool few = scores_as_decoded(call);
    decode_q = carver.take(few ? block * dim : 0);
    decode_k = carver.take(few ? call.plan.key_block * dim : 0);
    decode_s = carver.take(few ? padded(call.plan.key_block) : 0);
    bounds.begin = carver.take_indices(block);
    bounds.end = carver.take_indices(block);
    rows_of_panel = reinterpret_cast<KeyRange*>(carver.take_indices(2 * panels_of(block)));
    floats = carver.at - memory;
  }
};

/// Where a task adds up dk or dv: fp32 rows that hold whole vectors, from key `first` on.
struct Sums {
  float* data;
  Index stride, first;
  float* row(Index key) const { return data + (key - first) * stride; }
};

/// One block of queries of one query head, and the task's parts and keys. is_finite: no NaN or
/// infinity is in its q, z or dz.
struct Block {
  Index b, h, begin, count;
  KeyRange parts, keys;
  bool is_finite = true;
  Index panels() const { return panels_of(count); }
};

struct GradientPanel : Span {
  float *q, *dy, *dq, *p, *ds, *lse, *delta;
  Bounds bounds;
};

HWY_INLINE GradientPanel panel_of(const Call& call, const BackwardSpace& space, const Block& block,
                                  Index n) {
  const Span span = span_of(block.count, n);
  const Index dim = span.begin * padded(call.sizes.head_dim);
  const Index value_dim = span.begin * padded(call.sizes.value_dim);
  const Index keys = span.begin * call.plan.key_block;
  return {span,
          space.q + dim,
          space.dy + value_dim,
          space.dq + dim,
          space.p + keys,
          space.ds + keys,
          space.lse + span.begin,
          space.delta + span.begin,
          {space.bounds.begin + span.begin, space.bounds.end + span.begin}};
}

/// dy of a panel: rows and, times scale, transposed; lse and delta; the exclusion's direct part of
/// the part's own keys into dv, and da. dq = 0. Returns whether the panel is finite: what is not
/// shows in lse or delta.
inline bool start_panel(const Call& call, const BackwardSpace& space, const Block& block,
                        const GradientPanel& panel, Sums dv) {
  const Sizes& sizes = call.sizes;
  const Index size = sizes.value_dim, stride = packed_stride(size);
  const float scale = static_cast<float>(call.scale);
  const bool excludes = call.learned_strength || call.strength != 0;
  bool is_finite = true;
  queries_to_panel(call, panel, block.b, block.h, block.begin + panel.begin, space.rows,
                   space.scratch, panel.q);
  for (Index lane = 0; lane < panel.count; lane += kLanes) {
    const Index count = min_of(kLanes, panel.count - lane);
    const Index t = block.begin + panel.begin + lane;
    const Rows z = whole_rows(call.z, call.type, block.b, block.h, t, count, size, space.z);
    const Rows dz = whole_rows(call.dz, call.type, block.b, block.h, t, count, size, space.dz);
    OwnRows own{};
    if (excludes) own = own_rows(call, block.b, block.h, t, count, space.w);
    float* dy = space.dy_rows + (panel.begin + lane) * stride;
    GradientRow rows[kLanes];
    for (Index r = 0; r < count; ++r) {
      const Index key = call.mask.own_offset + t + r;
      rows[r] = {z.data + r * z.stride, dz.data + r * dz.stride, dy + r * stride,
                 contains(block.keys, key) ? dv.row(key) : nullptr};
    }
    float y_dy[kLanes], da[kLanes];
    const Index at = (block.b * sizes.query_heads + block.h) * sizes.queries + t;
    exclude_rows_backward(rows, own, call.c + at, count, padded(size), call.eps,
                          call.type != Element::kFloat32, y_dy, da);
    rows_to_panel({dy, stride}, count, size, scale, space.scratch, panel.dy + lane, panel.width);
    for (Index r = 0; r < count; ++r) {
      const float delta = y_dy[r] - (call.dlse ? call.dlse[at + r] : 0), lse = call.lse[at + r];
      if (call.dlearned_strength && rows[r].dw) call.dlearned_strength[at + r] = da[r];
      if (call.dsink_rows) {
        const float sink = call.sink_logits[block.h];
        call.dsink_rows[at + r] = sink == -INFINITY ? 0 : -std::exp(sink - lse) * delta;
      }
      panel.delta[lane + r] = -scale * delta;
      is_finite = is_finite && std::fabs(delta) < INFINITY && lse < INFINITY;  // -inf is no key
      // Without a visible key every p is 0.
      panel.lse[lane + r] = lse == -INFINITY ? INFINITY : lse;
    }
  }
  for (Index r = panel.count; r < panel.width; ++r) panel.delta[r] = 0, panel.lse[r] = INFINITY;
  for (Index n = 0; n < padded(sizes.head_dim) * panel.width; ++n) panel.dq[n] = 0;
  return is_finite;
}

/// The scores of a tile in the order of the decode path's sums, into p. Backward and forward see
/// the same bits of a score: where queries and keys have much in common, gradients live by what
/// cancels.
inline void decoded_scores(const Call& call, const BackwardSpace& space, const Block& block,
                           const GradientPanel& panel, Rows k, Index rows) {
  const Index size = call.sizes.head_dim, dim = padded(size), width = panel.width;
  for (Index r = 0; r < rows; ++r)
    for (Index d = 0; d < dim; ++d)
      space.decode_k[r * dim + d] = d < size ? k.data[r * k.stride + d] : 0;
  const TypedRows keys{reinterpret_cast<const char*>(space.decode_k),
                       dim * static_cast<Index>(sizeof(float)), Element::kFloat32};
  for (Index lane = 0; lane < width; ++lane) {
    float* s = space.decode_s;
    if (lane < panel.count) {
      float* q = space.decode_q + (panel.begin + lane) * dim;
      const Index t = block.begin + panel.begin + lane;
      load_row(row_at(call.q, call.type, block.b, block.h, t), call.type, call.q.element, size, q);
      scale_row(q, static_cast<float>(call.scale), q, dim);
      score_rows<Float32, 1, false>(keys, rows, dim, q, s, 0);
    }
    for (Index r = 0; r < rows; ++r) panel.p[r * width + lane] = lane < panel.count ? s[r] : 0;
  }
}

template <int R, int N>
HWY_INLINE void zero_masked(Vec (&acc)[R][N], const Segment& segment, const LaneBounds& lanes,
                            Index r) {
  if (!segment.masked) return;
  for (int j = 0; j < N; ++j)
    if (segment.masked >> j & 1)
      for (int i = 0; i < R; ++i)
        acc[i][j] = hn::IfThenElseZero(sees(lanes, (segment.first + j) * kLanes, r + i), acc[i][j]);
}

/// p = ds = 0 in rows [begin, end) and vectors [first, last).
HWY_INLINE void zero_rows(const GradientPanel& panel, Index begin, Index end, Index first,
                          Index last) {
  for (Index r = begin; r < end; ++r)
    for (Index l = first * kLanes; l < last * kLanes; l += kLanes) {
      hn::StoreU(hn::Zero(kF), kF, panel.p + r * panel.width + l);
      hn::StoreU(hn::Zero(kF), kF, panel.ds + r * panel.width + l);
    }
}

/// P^T = e^(s - lse) and dS^T = scale P (dP - delta) of one segment; zero where masked.
template <int N>
HWY_NOINLINE void score_gradient_segment(const Segment& segment, const LaneBounds& lanes,
                                         const Call& call, Rows k, Rows v,
                                         const GradientPanel& panel) {
  const Index lane = segment.first * kLanes, width = panel.width;
  by_rows<kTileRows>(segment.begin, segment.end, [&](auto rows, Index r) {
    constexpr int R = decltype(rows)::value;
    float* p = panel.p + r * width + lane;
    Vec acc[R][N];
    if (scores_as_decoded(call)) {
      load_tile(acc, p, width);
    } else {
      zero_tile(acc);
      multiply_add(acc, k.data + r * k.stride, k.stride, 1, panel.q + lane, width,
                   call.sizes.head_dim);
    }
    HWY_UNROLL(8)
    for (int j = 0; j < N; ++j) {
      const Vec lse = hn::LoadU(kF, panel.lse + lane + j * kLanes);
      HWY_UNROLL(8)
      for (int i = 0; i < R; ++i) acc[i][j] = exp(hn::Sub(acc[i][j], lse), 0.0f);  // p <= 1
    }
    zero_masked(acc, segment, lanes, r);
    store_tile(acc, p, width);

    start_tile(acc, panel.delta + lane);
    multiply_add(acc, v.data + r * v.stride, v.stride, 1, panel.dy + lane, width,
                 call.sizes.value_dim);
    HWY_UNROLL(8)
    for (int i = 0; i < R; ++i)
      for (int j = 0; j < N; ++j)
        acc[i][j] = hn::Mul(acc[i][j], hn::LoadU(kF, p + i * width + j * kLanes));
    zero_masked(acc, segment, lanes, r);
    store_tile(acc, panel.ds + r * width + lane, width);
  });
}

/// dQ^T += K^T dS^T for one segment.
template <int N>
HWY_NOINLINE void query_gradient_segment(const Segment& segment, Rows k, Index size,
                                         const GradientPanel& panel) {
  const Index lane = segment.first * kLanes, width = panel.width;
  const float* first = k.data + segment.begin * k.stride;
  const float* ds = panel.ds + segment.begin * width + lane;
  const Index steps = segment.end - segment.begin;
  const bool guarded = segment.masked && !all_finite(first, k.stride, steps, size);
  by_rows<kTileRows>(0, size, [&](auto rows, Index d) {
    constexpr int R = decltype(rows)::value;
    Vec acc[R][N];
    zero_tile(acc);
    if (guarded)
      multiply_add_guarded(acc, first + d, 1, k.stride, ds, width, steps);
    else
      multiply_add(acc, first + d, 1, k.stride, ds, width, steps);
    add_tile(acc, panel.dq + d * width + lane, width);
  });
}

/// One panel meets rows [key, key + rows). Returns the rows that it sees; a tile of dK or dV may
/// read kSumRows - 1 rows on either side of them.
HWY_INLINE KeyRange gradient_tile(const Call& call, const BackwardSpace& space, const Block& block,
                                  const GradientPanel& panel, Rows k, Rows v, Index key,
                                  Index rows) {
  const Segments segments = segments_of(panel.bounds, key, rows, panel.vectors);
  if (segments.count == 0) return {0, 0};
  const LaneBounds lanes = lane_bounds(panel.bounds, key, rows, panel.width);
  const KeyRange seen{segments.begin(), segments.end()};
  if (scores_as_decoded(call)) decoded_scores(call, space, block, panel, k, rows);
  Index filled = max_of(0, seen.begin - (kSumRows - 1));
  for_segments(segments, [&](auto count, const Segment& segment) {
    constexpr int N = decltype(count)::value;
    zero_rows(panel, filled, segment.begin, 0, panel.vectors);
    zero_rows(panel, segment.begin, segment.end, 0, segment.first);
    zero_rows(panel, segment.begin, segment.end, segment.first + N, panel.vectors);
    score_gradient_segment<N>(segment, lanes, call, k, v, panel);
    query_gradient_segment<N>(segment, k, call.sizes.head_dim, panel);
    filled = segment.end;
  });
  zero_rows(panel, filled, min_of(rows, filled + kSumRows - 1), 0, panel.vectors);
  return seen;
}

/// sums[row] += sum over the block's queries of A^T[row][query] * columns[query], where A is p or
/// ds, for rows [key, key + rows) and N vectors of columns. A tile has queries that see some of its
/// rows alone; unless all are finite, each product is asked whether it counts.
template <int N, float* GradientPanel::*A, bool kFinite>
HWY_NOINLINE void sum_piece(const Call& call, const BackwardSpace& space, const Block& block,
                            Index key, Index rows, Rows columns, float* sums, Index stride) {
  Index first = 0, last = 0;  // the queries that see a tile: neither falls from tile to tile
  const auto tile = [&](auto tile_rows, Index r) {
    constexpr int R = decltype(tile_rows)::value;
    while (first < block.count && space.bounds.end[first] <= key + r) ++first;
    while (last < block.count && space.bounds.begin[last] < key + r + R) ++last;
    Vec acc[R][N];
    zero_tile(acc);
    for (Index n = 0; n < block.panels(); ++n) {
      const KeyRange seen = space.rows_of_panel[n];
      if (r + R <= seen.begin || r >= seen.end) continue;
      const GradientPanel panel = panel_of(call, space, block, n);
      const Index begin = max_of(0, first - panel.begin);
      const Index end = min_of(panel.count, last - panel.begin);
      if (begin >= end) continue;
      const float* a = panel.*A + r * panel.width + begin;
      const float* from = columns.data + (panel.begin + begin) * columns.stride;
      if constexpr (kFinite)
        multiply_add(acc, a, panel.width, 1, from, columns.stride, end - begin);
      else
        multiply_add_where_not_zero(acc, a, panel.width, from, columns.stride, end - begin);
    }
    add_tile(acc, sums + r * stride, stride);
  };
  Index r = 0;
  for (; r + kSumRows <= rows; r += kSumRows) tile(Int<kSumRows>(), r);
  by_rows<2>(r, rows, tile);
}

template <float* GradientPanel::*A>
HWY_INLINE void sum_columns(const Call& call, const BackwardSpace& space, const Block& block,
                            Index key, Index rows, Rows columns, Index size, Sums sums) {
  const Index vectors = ceil_div(size, kLanes);
  for (Index n = 0; n < pieces_of(vectors, kSumVectors); ++n) {
    const Index first = piece_begin(vectors, kSumVectors, n);
    const Index count = piece_begin(vectors, kSumVectors, n + 1) - first;
    with_vectors<kSumVectors>(count, [&](auto piece) {
      constexpr int N = decltype(piece)::value;
      const auto sum = block.is_finite ? sum_piece<N, A, true> : sum_piece<N, A, false>;
      sum(call, space, block, key, rows, {columns.data + first * kLanes, columns.stride},
          sums.row(key) + first * kLanes, sums.stride);
    });
  }
}

/// The parts that add to dq of a block of queries, in their order: all between the first and the
/// last key that the block sees; part 0 where it sees none.
HWY_INLINE KeyRange turns_of(const Call& call, Index b, Index begin, Index count) {
  KeyRange all{call.sizes.keys, 0};
  for (Index pass = 0; pass < passes_of(call); ++pass) {
    const KeyRange low = keys_of(call, pass, b, begin);
    const KeyRange high = keys_of(call, pass, b, begin + count - 1);
    if (low.begin >= high.end) continue;
    all = {min_of(all.begin, low.begin), max_of(all.end, high.end)};
  }
  if (all.begin >= all.end) return {0, 1};
  return {all.begin / call.plan.part_keys, (all.end - 1) / call.plan.part_keys + 1};
}

/// dq of one part joins the total of those before it; then it is 0 again.
inline void add_part(const BackwardSpace& space, Index floats, bool is_first) {
  for (Index n = 0; n < floats; ++n) {
    space.dq_total[n] = is_first ? space.dq[n] : space.dq_total[n] + space.dq[n];
    space.dq[n] = 0;
  }
}

/// The total of one panel's dq that the tasks before left.
inline void load_total(const Call& call, const BackwardSpace& space, const Block& block,
                       const Span& span, float* total) {
  const Index size = call.sizes.head_dim;
  for (Index lane = 0; lane < span.count; lane += kLanes) {
    const Index count = min_of(kLanes, span.count - lane);
    const Rows rows = whole_rows(call.dq_sums, Element::kFloat32, block.b, block.h,
                                 block.begin + span.begin + lane, count, size, space.rows);
    rows_to_panel(rows, count, size, 1.0f, space.scratch, total + lane, span.width);
  }
}

/// One panel's dq to rows: of `to`, whose elements are `type`.
inline void store_total(const Call& call, const BackwardSpace& space, const Block& block,
                        const Span& span, const float* total, const Strided& to, Element type) {
  const Index size = call.sizes.head_dim;
  const bool direct = in_place(to, type, size);
  for (Index lane = 0; lane < span.count; lane += kLanes) {
    const Index count = min_of(kLanes, span.count - lane);
    char* first = row_at(to, type, block.b, block.h, block.begin + span.begin + lane);
    float* rows = direct ? reinterpret_cast<float*>(first) : space.rows;
    const Index stride = direct ? to.row : padded(size);
    panel_to_rows(total + lane, span.width, count, size, hn::Set(kF, 1.0f), space.scratch, rows,
                  stride);
    if (direct) continue;
    for (Index r = 0; r < count; ++r)
      store_row(rows + r * stride, first + r * to.row * element_size(type), type, to.element, size);
  }
}

/// A task that adds to a block's dq waits until the part before its own has. Tasks start in order,
/// so that one is done or at work.
HWY_INLINE void wait_for_turn(const std::int32_t* turn, Index part) {
  for (int spin = 0; __atomic_load_n(turn, __ATOMIC_ACQUIRE) != part; ++spin)
    if (spin > 1000) sched_yield();
}

/// A block of queries meets one part of the keys.
inline void gradient_part(const Call& call, const BackwardSpace& space, const Block& block,
                          Index part, Rows q, Rows dy, Sums dk, Sums dv) {
  const Sizes& sizes = call.sizes;
  const Index key_head = block.h / (sizes.query_heads / sizes.key_heads);
  for (Index pass = 0; pass < passes_of(call); ++pass) {
    const KeyRange seen = fill_bounds(call, pass, block.b, block.begin, block.count, space.bounds);
    const KeyRange keys =
        intersect(seen, {part * call.plan.part_keys, (part + 1) * call.plan.part_keys});
    for (Index key = keys.begin; key < keys.end; key += call.plan.key_block) {
      const Index rows = min_of(call.plan.key_block, keys.end - key);
      const Rows k =
          rows_of(call.k, call.type, block.b, key_head, key, rows, sizes.head_dim, space.k);
      const Rows v =
          rows_of(call.v, call.type, block.b, key_head, key, rows, sizes.value_dim, space.v);
      for (Index n = 0; n < block.panels(); ++n)
        space.rows_of_panel[n] =
            gradient_tile(call, space, block, panel_of(call, space, block, n), k, v, key, rows);
      sum_columns<&GradientPanel::p>(call, space, block, key, rows, dy, sizes.value_dim, dv);
      sum_columns<&GradientPanel::ds>(call, space, block, key, rows, q, sizes.head_dim, dk);
    }
  }
}

inline void backward_block(const Call& call, const BackwardSpace& space, Block block, Sums dk,
                           Sums dv) {
  const Sizes& sizes = call.sizes;
  const KeyRange turns = turns_of(call, block.b, block.begin, block.count);
  const KeyRange parts = intersect(turns, block.parts);
  if (parts.begin >= parts.end) return;
  for (Index n = 0; n < block.panels(); ++n)
    block.is_finite &= start_panel(call, space, block, panel_of(call, space, block, n), dv);
  const Rows q = in_place(call.q, call.type, sizes.head_dim) && call.q.row % 256 != 0
                     ? whole_rows(call.q, call.type, block.b, block.h, block.begin, block.count,
                                  sizes.head_dim, nullptr)
                     : copy_rows(call.q, call.type, block.b, block.h, block.begin, block.count,
                                 sizes.head_dim, space.q_copy);
  const Rows dy{space.dy_rows, packed_stride(sizes.value_dim)};

  std::int32_t* turn = call.turns +
                       (block.b * sizes.query_heads + block.h) * call.plan.query_blocks +
                       block.begin / call.plan.query_block;
  const bool alone = turns.end - turns.begin == 1;  // one part: its dq is the total
  float* total = alone ? space.dq : space.dq_total;
  const auto total_of = [&](const Span& span) {
    return total + span.begin * padded(sizes.head_dim);
  };
  for (Index part = parts.begin; part < parts.end; ++part) {
    gradient_part(call, space, block, part, q, dy, dk, dv);
    if (alone) break;
    if (part == parts.begin && part != turns.begin) {
      wait_for_turn(turn, part);
      for (Index n = 0; n < block.panels(); ++n) {
        const Span span = span_of(block.count, n);
        load_total(call, space, block, span, total_of(span));
      }
    }
    add_part(space, padded(block.count) * padded(sizes.head_dim), part == turns.begin);
  }
  const bool is_last = parts.end == turns.end;
  for (Index n = 0; n < block.panels(); ++n) {
    const Span span = span_of(block.count, n);
    store_total(call, space, block, span, total_of(span), is_last ? call.dq : call.dq_sums,
                is_last ? call.type : Element::kFloat32);
  }
  __atomic_store_n(turn, static_cast<std::int32_t>(parts.end), __ATOMIC_RELEASE);
}

/// The task's slot for sums, or the gradient itself where a task may add up there; zeroed.
HWY_INLINE Sums start_sums(const Call& call, float* slots, const Strided& gradient, Index size,
                           Index b, Index key_head, KeyRange keys, Index slot) {
  Sums sums{slots + slot * call.plan.task_parts * call.plan.part_keys * padded(size), padded(size),
            keys.begin};
  if (!slots)
    sums = {reinterpret_cast<float*>(row_at(gradient, call.type, b, key_head, keys.begin)),
            gradient.row, keys.begin};
  for (Index key = keys.begin; key < keys.end; ++key)
    for (Index d = 0; d < padded(size); ++d) sums.row(key)[d] = 0;
  return sums;
}

inline void write_sums(const Call& call, const float* slots, Sums sums, const Strided& gradient,
                       Index size, Index b, Index key_head, KeyRange keys) {
  if (!slots) return;
  for (Index key = keys.begin; key < keys.end; ++key)
    store_row(sums.row(key), row_at(gradient, call.type, b, key_head, key), call.type,
              gradient.element, size);
}

void backward_task(const Call& call, std::int64_t task, std::int64_t slot, float* workspace) {
  const Sizes& sizes = call.sizes;
  const Plan& plan = call.plan;
  const BackwardSpace space(call, workspace);
  const Index heads = sizes.batch * sizes.key_heads;
  const Index b = task % heads / sizes.key_heads, key_head = task % sizes.key_heads;
  // First parts first: where causal, they are the heaviest.
  const Index part = task / heads * plan.task_parts;
  const KeyRange parts{part, min_of(plan.parts, part + plan.task_parts)};
  const KeyRange keys{parts.begin * plan.part_keys, min_of(sizes.keys, parts.end * plan.part_keys)};
  const Sums dk = start_sums(call, call.dk_sums, call.dk, sizes.head_dim, b, key_head, keys, slot);
  const Sums dv = start_sums(call, call.dv_sums, call.dv, sizes.value_dim, b, key_head, keys, slot);
  const Index group = sizes.query_heads / sizes.key_heads;
  for (Index h = key_head * group; h < (key_head + 1) * group; ++h)
    for (Index begin = 0; begin < sizes.queries; begin += plan.query_block)
      backward_block(call, space,
                     {b, h, begin, min_of(plan.query_block, sizes.queries - begin), parts, keys},
                     dk, dv);
  write_sums(call, call.dk_sums, dk, call.dk, sizes.head_dim, b, key_head, keys);
  write_sums(call, call.dv_sums, dv, call.dv, sizes.value_dim, b, key_head, keys);
}

std::int64_t backward_floats(const Call& call) { return BackwardSpace(call, nullptr).floats; }

}  // namespace
}  // namespace xsa::kernels::cpu
