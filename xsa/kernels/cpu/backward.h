// The backward of one instruction set: the exclusion's gradients as prologue, then flash
// attention's backward with dy in dz's place.
//
// A task is a part of one key/value head: some blocks of queries of the heads in its group, one
// after the other, each meeting all keys that it sees. P^T and dS^T of a block of keys are made
// panel by panel and stay in L2; dQ stays local; dK and dV are summed in place over the task.
//
// FLOPs: 2 (3 D + 2 Dv) for each visible (query, key) pair, one 2^x each, and 12 Dv a query for the
// exclusion. Bytes: q, z, dz, dq once; k, v and the sums of dk, dv once a query block.
#pragma once

#include "xsa/kernels/cpu/forward.h"

namespace xsa::kernels::cpu {
namespace {

struct BackwardSpace {
  float *q, *dy;                  // panels [D][width], [Dv][width]
  float *q_columns, *dy_columns;  // pieces of columns [queries][piece]
  float *dq, *p, *ds;             // panels [D][width], [keys][width], [keys][width]
  float *lse, *delta;             // [queries]; lse in base 2
  float *rows, *z, *w, *dz, *quads, *k, *v;
  Index floats;

  BackwardSpace(const Call& call, float* memory) {
    const Index panel = call.plan.panel, block = call.plan.query_block;
    const Index dim = padded(call.sizes.head_dim), value_dim = padded(call.sizes.value_dim);
    Carver carver{memory};
    q = carver.take(block * dim);
    dy = carver.take(block * value_dim);
    q_columns = carver.take(block * dim);
    dy_columns = carver.take(block * value_dim);
    dq = carver.take(block * dim);
    p = carver.take(block * call.plan.key_block);
    ds = carver.take(block * call.plan.key_block);
    lse = carver.take(block);
    delta = carver.take(block);
    rows = carver.take(panel * max_of(dim, value_dim));
    z = carver.take(value_dim);
    w = carver.take(value_dim);
    dz = carver.take(value_dim);
    quads = carver.take(kLanes * max_of(dim, value_dim));
    k = carver.take(call.plan.key_block * packed_stride(call.sizes.head_dim));
    v = carver.take(call.plan.key_block * packed_stride(call.sizes.value_dim));
    floats = carver.at - memory;
  }
};

/// Where a task adds up dk or dv: rows of fp32 that hold whole vectors.
struct Sums {
  float* data;
  Index stride;
};

/// One block of queries of one query head.
struct Block {
  Index b, h, begin, count;
  Index panels() const { return panels_of(count); }
};

struct GradientPanel : Span {
  float *q, *dy, *dq, *p, *ds, *lse, *delta;
};

HWY_INLINE GradientPanel panel_of(const Call& call, const BackwardSpace& space, const Block& block,
                                  Index n) {
  const Span span = span_of(block.count, n);
  const Index dim = span.begin * padded(call.sizes.head_dim);
  const Index value_dim = span.begin * padded(call.sizes.value_dim);
  const Index keys = span.begin * call.plan.key_block;
  return {span,           space.q + dim,   space.dy + value_dim,   space.dq + dim,
          space.p + keys, space.ds + keys, space.lse + span.begin, space.delta + span.begin};
}

/// Rows of one vector of queries to pieces of columns, as dK and dV read them.
inline void rows_to_columns(const float* rows, Index count, Index size, float factor, Index begin,
                            Index queries, float* columns) {
  const Index vectors = ceil_div(size, kLanes), stride = vectors * kLanes;
  const Vec scale = hn::Set(kF, factor);
  for (Index n = 0; n < pieces_of(vectors, kSumVectors); ++n) {
    const Index first = piece_begin(vectors, kSumVectors, n) * kLanes;
    const Index width = piece_begin(vectors, kSumVectors, n + 1) * kLanes - first;
    float* piece = columns + first * queries + begin * width;
    for (Index r = 0; r < count; ++r)
      for (Index d = 0; d < width; d += kLanes)
        hn::StoreU(hn::Mul(scale, hn::LoadU(kF, rows + r * stride + first + d)), kF,
                   piece + r * width + d);
  }
}

/// q, dy, lse and delta of a panel; the exclusion's direct part into dv; dq = 0.
inline void start_panel(const Call& call, const BackwardSpace& space, const Block& block,
                        const GradientPanel& panel, Sums dv) {
  const Sizes& sizes = call.sizes;
  const Index dim = padded(sizes.head_dim), value_dim = padded(sizes.value_dim);
  const Index key_head = block.h / (sizes.query_heads / sizes.key_heads);
  const bool excludes = call.learned_strength || call.strength != 0;
  const Index first = block.begin + panel.begin;

  for (Index r = 0; r < panel.count; ++r)
    load_row(row_at(call.q, call.type, block.b, block.h, first + r), call.type, call.q.element,
             sizes.head_dim, space.rows + r * dim);
  for (Index j = 0; j < panel.vectors; ++j)
    rows_to_panel(space.rows + j * kLanes * dim, dim, min_of(kLanes, panel.count - j * kLanes),
                  sizes.head_dim, static_cast<float>(call.scale * kLog2E), space.quads,
                  panel.q + j * kLanes, panel.width);
  rows_to_columns(space.rows, panel.count, sizes.head_dim, static_cast<float>(call.scale),
                  panel.begin, block.count, space.q_columns);

  for (Index r = 0; r < panel.count; ++r) {
    const Index t = first + r;
    const Index at = (block.b * sizes.query_heads + block.h) * sizes.queries + t;
    float* dz = space.rows + r * value_dim;
    load_row(row_at(call.dz, call.type, block.b, block.h, t), call.type, call.dz.element,
             sizes.value_dim, dz);
    load_row(row_at(call.z, call.type, block.b, block.h, t), call.type, call.z.element,
             sizes.value_dim, space.z);
    panel.delta[r] = dot(space.z, dz, value_dim) - (call.dlse ? call.dlse[at] : 0);
    panel.lse[r] = call.lse[at] == -INFINITY  // no visible key: p is 0
                       ? INFINITY
                       : call.lse[at] * static_cast<float>(kLog2E);
    if (excludes) {
      load_row(row_at(call.v, call.type, block.b, key_head, sizes.own_offset + t), call.type,
               call.v.element, sizes.value_dim, space.w);
      const float da = exclude_row_backward(dz, space.z, space.w, sizes.value_dim,
                                            strength_of(call, block.b, block.h, t), call.c[at],
                                            call.eps, dv.data + (sizes.own_offset + t) * dv.stride);
      if (call.dlearned_strength) call.dlearned_strength[at] = da;
    }
  }
  for (Index r = panel.count; r < panel.width; ++r) panel.delta[r] = 0, panel.lse[r] = INFINITY;
  for (Index j = 0; j < panel.vectors; ++j)
    rows_to_panel(space.rows + j * kLanes * value_dim, value_dim,
                  min_of(kLanes, panel.count - j * kLanes), sizes.value_dim, 1.0f, space.quads,
                  panel.dy + j * kLanes, panel.width);
  rows_to_columns(space.rows, panel.count, sizes.value_dim, 1.0f, panel.begin, block.count,
                  space.dy_columns);
  for (Index n = 0; n < dim * panel.width; ++n) panel.dq[n] = 0;
}

/// P^T = 2^(s - lse) and dS^T = P (dP - delta) of one segment; zero where masked.
template <int N>
HWY_NOINLINE void score_gradient_segment(const Segment& segment, const Call& call, Rows k, Rows v,
                                         const GradientPanel& panel) {
  const Index lane = segment.first * kLanes, width = panel.width;
  by_rows<kTileRows>(segment.begin, segment.end, [&](auto rows, Index r) {
    constexpr int R = decltype(rows)::value;
    float* p = panel.p + r * width;
    float* ds = panel.ds + r * width;
    Vec acc[R][N];
    zero_tile(acc);
    multiply_add(acc, k.data + r * k.stride, k.stride, 1, panel.q + lane, width,
                 call.sizes.head_dim);
    HWY_UNROLL(8)
    for (int i = 0; i < R; ++i)
      for (int j = 0; j < N; ++j)
        acc[i][j] = exp2(hn::Sub(acc[i][j], hn::LoadU(kF, panel.lse + lane + j * kLanes)));
    if (segment.masked)
      for (int i = 0; i < R; ++i) acc[i][0] = hn::IfThenElseZero(sees(segment, r + i), acc[i][0]);
    store_tile(acc, p + lane, width);

    zero_tile(acc);
    multiply_add(acc, v.data + r * v.stride, v.stride, 1, panel.dy + lane, width,
                 call.sizes.value_dim);
    HWY_UNROLL(8)
    for (int i = 0; i < R; ++i)
      for (int j = 0; j < N; ++j) {
        const Index at = lane + j * kLanes;
        acc[i][j] = hn::Mul(hn::Sub(acc[i][j], hn::LoadU(kF, panel.delta + at)),
                            hn::LoadU(kF, p + i * width + at));
      }
    if (segment.masked)
      for (int i = 0; i < R; ++i) acc[i][0] = hn::IfThenElseZero(sees(segment, r + i), acc[i][0]);
    store_tile(acc, ds + lane, width);
    for (int i = 0; i < R; ++i)  // what the vectors before see, for the sums over queries
      for (Index l = 0; l < lane; l += kLanes) {
        hn::StoreU(hn::Zero(kF), kF, p + i * width + l);
        hn::StoreU(hn::Zero(kF), kF, ds + i * width + l);
      }
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
    float* dq = panel.dq + d * width + lane;
    load_tile(acc, dq, width);
    if (guarded)
      multiply_add_guarded(acc, first + d, 1, k.stride, ds, width, steps);
    else
      multiply_add(acc, first + d, 1, k.stride, ds, width, steps);
    store_tile(acc, dq, width);
  });
}

/// One panel meets one block of keys. Rows [rows, block_rows) it does not see.
HWY_INLINE void gradient_tile(const Call& call, const GradientPanel& panel, Rows k, Rows v,
                              Index rows, Index block_rows, Index own) {
  const Segments segments = segments_of(call.sizes.is_causal, rows, own, panel.vectors);
  for (int n = 0; n < segments.count; ++n) {
    const Segment& segment = segments.at[n];
    with_vectors<kPanelVectors>(panel.vectors - segment.first, [&](auto vectors) {
      constexpr int N = decltype(vectors)::value;
      score_gradient_segment<N>(segment, call, k, v, panel);
      query_gradient_segment<N>(segment, k, call.sizes.head_dim, panel);
    });
  }
  // A tile of dK or dV reads up to kSumRows - 1 rows after the last that the panel sees.
  const Index zeros = min_of(block_rows, rows + kSumRows - 1) - rows;
  for (Index n = rows * panel.width; n < (rows + zeros) * panel.width; ++n)
    panel.p[n] = panel.ds[n] = 0;
}

/// sums[row] += sum over the block's queries of A^T[row][query] * columns[query], where A is p or
/// ds. `own`: the own key of the block's first query, from the block of keys on.
template <int N, float* GradientPanel::*A>
HWY_NOINLINE void sum_piece(const Call& call, const BackwardSpace& space, const Block& block,
                            Index rows, Index own, const float* piece, float* sums, Index stride) {
  constexpr Index kWidth = N * kLanes;
  const auto tile = [&](auto tile_rows, Index r) {
    constexpr int R = decltype(tile_rows)::value;
    Vec acc[R][N];
    load_tile(acc, sums + r * stride, stride);
    const Index first = call.sizes.is_causal ? max_of(0, r - own) : 0;  // query that sees row r
    for (Index n = 0; n < block.panels(); ++n) {
      const GradientPanel panel = panel_of(call, space, block, n);
      const Index skip = max_of(0, first - panel.begin);
      if (skip >= panel.count) continue;
      multiply_add(acc, panel.*A + r * panel.width + skip, panel.width, 1,
                   piece + (panel.begin + skip) * kWidth, kWidth, panel.count - skip);
    }
    store_tile(acc, sums + r * stride, stride);
  };
  Index r = 0;
  for (; r + kSumRows <= rows; r += kSumRows) tile(Int<kSumRows>(), r);
  by_rows<2>(r, rows, tile);
}

template <float* GradientPanel::*A>
HWY_INLINE void sum_columns(const Call& call, const BackwardSpace& space, const Block& block,
                            Index rows, Index own, const float* columns, Index size, float* sums,
                            Index stride) {
  const Index vectors = ceil_div(size, kLanes);
  for (Index n = 0; n < pieces_of(vectors, kSumVectors); ++n) {
    const Index first = piece_begin(vectors, kSumVectors, n);
    const Index count = piece_begin(vectors, kSumVectors, n + 1) - first;
    with_vectors<kSumVectors>(count, [&](auto piece) {
      sum_piece<decltype(piece)::value, A>(call, space, block, rows, own,
                                           columns + first * kLanes * block.count,
                                           sums + first * kLanes, stride);
    });
  }
}

inline void finish_panel(const Call& call, const BackwardSpace& space, const Block& block,
                         const GradientPanel& panel) {
  const Index dim = padded(call.sizes.head_dim);
  for (Index j = 0; j < panel.vectors; ++j)
    panel_to_rows(panel.dq + j * kLanes, panel.width, min_of(kLanes, panel.count - j * kLanes),
                  call.sizes.head_dim, hn::Set(kF, static_cast<float>(call.scale)), space.quads,
                  space.rows + j * kLanes * dim, dim);
  for (Index r = 0; r < panel.count; ++r)
    store_row(space.rows + r * dim, 1.0f,
              row_at(call.dq, call.type, block.b, block.h, block.begin + panel.begin + r),
              call.type, call.dq.element, call.sizes.head_dim);
}

inline void backward_block(const Call& call, const BackwardSpace& space, const Block& block,
                           Sums dk, Sums dv) {
  const Sizes& sizes = call.sizes;
  const Index key_head = block.h / (sizes.query_heads / sizes.key_heads);
  for (Index n = 0; n < block.panels(); ++n)
    start_panel(call, space, block, panel_of(call, space, block, n), dv);

  const Index keys = visible_keys_end(sizes, block.begin + block.count);
  for (Index key = 0; key < keys; key += call.plan.key_block) {
    const Index rows = min_of(call.plan.key_block, keys - key);
    const Index own = sizes.own_offset + block.begin - key;
    const Rows k =
        rows_of(call.k, call.type, block.b, key_head, key, rows, sizes.head_dim, space.k);
    const Rows v =
        rows_of(call.v, call.type, block.b, key_head, key, rows, sizes.value_dim, space.v);
    for (Index n = 0; n < block.panels(); ++n) {
      const GradientPanel panel = panel_of(call, space, block, n);
      const Index seen = visible_keys_end(sizes, block.begin + panel.begin + panel.count) - key;
      if (seen > 0) gradient_tile(call, panel, k, v, min_of(rows, seen), rows, own + panel.begin);
    }
    sum_columns<&GradientPanel::p>(call, space, block, rows, own, space.dy_columns, sizes.value_dim,
                                   dv.data + key * dv.stride, dv.stride);
    sum_columns<&GradientPanel::ds>(call, space, block, rows, own, space.q_columns, sizes.head_dim,
                                    dk.data + key * dk.stride, dk.stride);
  }
  for (Index n = 0; n < block.panels(); ++n)
    finish_panel(call, space, block, panel_of(call, space, block, n));
}

/// The sums of a slot, or the gradient itself where the plan lets a task write it.
HWY_INLINE Sums sums_of(const Call& call, float* sums, const Strided& gradient, Index size,
                        Index head_index, Index slot) {
  const Index b = head_index / call.sizes.key_heads, h = head_index % call.sizes.key_heads;
  if (!sums) return {reinterpret_cast<float*>(row_at(gradient, call.type, b, h, 0)), gradient.row};
  return {sums + slot * call.sizes.keys * padded(size), padded(size)};
}

inline void zero_rows(Sums sums, Index rows, Index size) {
  for (Index r = 0; r < rows; ++r)
    for (Index d = 0; d < padded(size); ++d) sums.data[r * sums.stride + d] = 0;
}

void backward_task(const Call& call, std::int64_t task, std::int64_t slot, float* workspace) {
  const Sizes& sizes = call.sizes;
  const Plan& plan = call.plan;
  const BackwardSpace space(call, workspace);
  const Index head_index = task / plan.parts, part = task % plan.parts;
  const Index b = head_index / sizes.key_heads, key_head = head_index % sizes.key_heads;
  const Sums dk = sums_of(call, call.dk_sums, call.dk, sizes.head_dim, head_index, slot);
  const Sums dv = sums_of(call, call.dv_sums, call.dv, sizes.value_dim, head_index, slot);
  zero_rows(dk, sizes.keys, sizes.head_dim);
  zero_rows(dv, sizes.keys, sizes.value_dim);
  const Index group = sizes.query_heads / sizes.key_heads;
  const Index end = part_begin(sizes, plan, part + 1);
  for (Index unit = part_begin(sizes, plan, part); unit < end; ++unit) {
    const Index begin = unit % plan.query_blocks * plan.query_block;
    const Block block{b, key_head * group + unit / plan.query_blocks, begin,
                      min_of(plan.query_block, sizes.queries - begin)};
    backward_block(call, space, block, dk, dv);
  }
}

inline void write_rows(const Call& call, float* sums, const Strided& gradient, Index size,
                       Index head_index, Index first_slot, Index parts, Index begin, Index end) {
  if (!sums) return;
  const Index b = head_index / call.sizes.key_heads, h = head_index % call.sizes.key_heads;
  const Index slot_floats = call.sizes.keys * padded(size);
  for (Index r = begin; r < end; ++r) {
    float* total = sums + first_slot * slot_floats + r * padded(size);
    for (Index part = 1; part < parts; ++part)
      for (Index d = 0; d < padded(size); ++d) total[d] += total[part * slot_floats + d];
    store_row(total, 1.0f, row_at(gradient, call.type, b, h, r), call.type, gradient.element, size);
  }
}

void write_sums(const Call& call, std::int64_t head_index, std::int64_t first_slot,
                std::int64_t parts, std::int64_t begin, std::int64_t end) {
  write_rows(call, call.dk_sums, call.dk, call.sizes.head_dim, head_index, first_slot, parts, begin,
             end);
  write_rows(call, call.dv_sums, call.dv, call.sizes.value_dim, head_index, first_slot, parts,
             begin, end);
}

std::int64_t backward_floats(const Call& call) { return BackwardSpace(call, nullptr).floats; }

}  // namespace
}  // namespace xsa::kernels::cpu
