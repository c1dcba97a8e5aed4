// The decode path of one instruction set: a few queries against a long cache.
//
// The rows of a key/value head, its group's query heads times T queries, meet one split of the keys
// chunk by chunk, K and V read where they lie. The head dimension lies along the vectors: a tile of
// up to kScoreRows rows and 4 keys sums its products lane by lane, and a transposing reduction
// leaves one score a lane. The softmax has keys as lanes. Then rows of V times p add up to y.
//
// FLOPs: 2 (D + Dv) for each (row, key) pair. Bytes: k and v once, as they are stored; with few
// rows the time is theirs.
#pragma once

#include <cmath>

#include "xsa/kernels/core/mask.h"
#include "xsa/kernels/cpu/decode_call.h"
#include "xsa/kernels/cpu/elements.h"
#include "xsa/kernels/cpu/exclude_row.h"
#include "xsa/kernels/cpu/forward.h"

namespace xsa::kernels::cpu {
namespace {

constexpr Index kChunk = 1024;      // keys of one softmax step,
constexpr Index kShortChunk = 256;  // or where row blocks read K and V again, from L2
constexpr Index kStep = 32;         // keys that all rows meet while their K (or V) is in L1
constexpr Index kRowBlock = 16;     // rows whose scores of a chunk stay in L1
// With 4 keys: kScoreRows x 4 sums, the rows and a key in 16 registers, or 32.
constexpr int kScoreRows = kManyRegisters ? 4 : 3;

// ---- rows of K and V, as they are stored

/// kLanes elements of a row from d on, to fp32.
template <class E>
HWY_INLINE Vec load_lanes(const char* row, Index d) {
  return E::load(reinterpret_cast<const typename E::Stored*>(row) + d);
}

/// Asks for their line of memory.
template <class E>
HWY_INLINE void fetch(const char* row, Index d) {
  const Index offset = d * static_cast<Index>(sizeof(typename E::Stored));
  if (offset % 64 == 0) __builtin_prefetch(row + offset);
}

/// Rows as they are stored; the stride is in bytes.
struct TypedRows {
  const char* data;
  Index stride;
  Element type;

  const char* row(Index n) const { return data + n * stride; }
  TypedRows from(Index n) const { return {row(n), stride, type}; }
};

/// K or V of one chunk.
struct Chunk {
  TypedRows rows;
  Index element, size;  // stride and number of a row's elements
  bool pack;            // to fp32 first, step by step
};

inline Chunk chunk_of(const Call& call, const Strided& array, Index size, Index rows, Index b,
                      Index h, Index begin) {
  const bool vectors = array.element == 1 && size % kLanes == 0;
  // Many rows would convert the same elements many times.
  const bool cheap =
      call.type == Element::kFloat32 ||
      (rows <= 2 * kScoreRows && (call.type == Element::kBFloat16 || Float16::kInHardware));
  return {{row_at(array, call.type, b, h, begin), array.row * element_size(call.type), call.type},
          array.element,
          size,
          !(vectors && cheap)};
}

/// `count` rows of a chunk from `key` on, in whole vectors: where they lie, or in `copy`, fp32 with
/// zeros up to whole vectors.
inline TypedRows step_rows(const Chunk& chunk, Index key, Index count, float* copy) {
  const TypedRows from = chunk.rows.from(key);
  if (!chunk.pack) return from;
  const Index dim = padded(chunk.size);
  with_element(from.type, [&](auto type) {
    using E = decltype(type);
    for (Index r = 0; r < count; ++r) {
      const auto* row = reinterpret_cast<const typename E::Stored*>(from.row(r));
      float* to = copy + r * dim;
      if (chunk.element == 1)
        by_vectors(chunk.size,
                   [&](Index d, auto extent) { hn::StoreU(load<E>(row + d, extent), kF, to + d); });
      else
        load_row(from.row(r), from.type, chunk.element, chunk.size, to);
    }
  });
  return {reinterpret_cast<const char*>(copy), dim * static_cast<Index>(sizeof(float)),
          Element::kFloat32};
}

// ---- scores

#if HWY_TARGET == HWY_SCALAR
constexpr int kQuad = 1;
HWY_INLINE Vec sum_quad(const Vec (&sums)[1]) { return sums[0]; }
#else
constexpr int kQuad = 4;
/// In every block of 4 lanes, what that block of the four vectors sums to.
HWY_INLINE Vec sum_quad(const Vec (&sums)[4]) {
  const hn::Repartition<std::uint64_t, Floats> pairs;
  const auto fold = [](Vec a, Vec b) {  // a0 + a2, b0 + b2, a1 + a3, b1 + b3
    return hn::Add(hn::InterleaveLower(kF, a, b), hn::InterleaveUpper(kF, a, b));
  };
  const auto ab = hn::BitCast(pairs, fold(sums[0], sums[1]));
  const auto cd = hn::BitCast(pairs, fold(sums[2], sums[3]));
  return hn::Add(hn::BitCast(kF, hn::InterleaveLower(pairs, ab, cd)),
                 hn::BitCast(kF, hn::InterleaveUpper(pairs, ab, cd)));
}
#endif

constexpr int kQuads = static_cast<int>(kLanes) / kQuad;

/// The blocks of each vector, summed: block n is the sum of vector n's.
#if HWY_MAX_BYTES > 16
HWY_INLINE Vec sum_halves(Vec a, Vec b) {
  return hn::Add(hn::ConcatLowerLower(kF, b, a), hn::ConcatUpperUpper(kF, b, a));
}
HWY_INLINE Vec sum_blocks(const Vec (&quads)[2]) { return sum_halves(quads[0], quads[1]); }
HWY_INLINE Vec sum_blocks(const Vec (&quads)[4]) {
  const auto neighbours = [](Vec a, Vec b) {
    return hn::Add(hn::OddEvenBlocks(b, a), hn::SwapAdjacentBlocks(hn::OddEvenBlocks(a, b)));
  };
  return sum_halves(neighbours(quads[0], quads[1]), neighbours(quads[2], quads[3]));
}
#else
HWY_INLINE Vec sum_blocks(const Vec (&quads)[1]) { return quads[0]; }
#endif

/// Products summed so far join those before, and start from zero again.
template <int R, int N>
HWY_INLINE void close_products(Vec (&acc)[R][N], Vec (&closed)[R][N]) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      closed[r][n] = hn::Add(closed[r][n], acc[r][n]), acc[r][n] = hn::Zero(kF);
}

/// s[r][key] = q_r . k_key for R rows and `count` keys; lanes behind the last key repeat it.
template <class E, int R, bool kFetch>
HWY_NOINLINE void score_rows(TypedRows k, Index count, Index dim, const float* HWY_RESTRICT q,
                             float* HWY_RESTRICT s, Index ahead) {
  for (Index key = 0; key < count; key += kLanes) {
    Vec quads[R][kQuads];
    [[maybe_unused]] Vec closed[R][kQuad];
    if constexpr (kLanes == 1) zero_tile(closed);
    HWY_UNROLL(4)
    for (int n = 0; n < kQuads; ++n) {
      const char* rows[kQuad];
      HWY_UNROLL(4)
      for (int i = 0; i < kQuad; ++i) rows[i] = k.row(min_of(key + n * kQuad + i, count - 1));
      Vec acc[R][kQuad];
      zero_tile(acc);
      for (Index d = 0; d < dim; d += kLanes) {
        if constexpr (kLanes == 1) {  // a lane has the whole sum: eight products by themselves
          if (d % 8 == 0 && d > 0) close_products(acc, closed);
        }
        Vec x[R];
        HWY_UNROLL(4)
        for (int r = 0; r < R; ++r) x[r] = hn::LoadU(kF, q + r * dim + d);
        HWY_UNROLL(4)
        for (int i = 0; i < kQuad; ++i) {
          if constexpr (kFetch) fetch<E>(rows[i] + ahead, d);
          const Vec y = load_lanes<E>(rows[i], d);
          HWY_UNROLL(4)
          for (int r = 0; r < R; ++r) acc[r][i] = hn::MulAdd(x[r], y, acc[r][i]);
        }
      }
      if constexpr (kLanes == 1) {
        close_products(acc, closed);
        for (int r = 0; r < R; ++r) acc[r][0] = closed[r][0], closed[r][0] = hn::Zero(kF);
      }
      HWY_UNROLL(4)
      for (int r = 0; r < R; ++r) quads[r][n] = sum_quad(acc[r]);
    }
    HWY_UNROLL(4)
    for (int r = 0; r < R; ++r) hn::StoreU(sum_blocks(quads[r]), kF, s + r * kChunk + key);
  }
}

// ---- values

/// y[r] += sum over keys of p[r][key] v[key] for R rows and N vectors.
template <class E, int R, int N, bool kFetch>
HWY_NOINLINE void value_tile(TypedRows v, Index count, Index d, const float* HWY_RESTRICT p,
                             float* HWY_RESTRICT y, Index dim, Index ahead) {
  Vec acc[R][N];
  zero_tile(acc);
  for (Index key = 0; key < count; ++key) {
    const char* row = v.row(key);
    Vec x[R];
    HWY_UNROLL(4)
    for (int r = 0; r < R; ++r) x[r] = hn::Set(kF, p[r * kChunk + key]);
    HWY_UNROLL(8)
    for (int n = 0; n < N; ++n) {
      if constexpr (kFetch) fetch<E>(row + ahead, d + n * kLanes);
      const Vec value = load_lanes<E>(row, d + n * kLanes);
      HWY_UNROLL(4)
      for (int r = 0; r < R; ++r) acc[r][n] = hn::MulAdd(x[r], value, acc[r][n]);
    }
  }
  add_tile(acc, y + d, dim);
}

/// The same for all of Dv.
template <class E, int R, bool kFetch>
HWY_INLINE void value_rows(TypedRows v, Index count, const float* p, float* y, Index dim,
                           Index ahead) {
  constexpr int kMost = R == 1 ? 8 : R == 2 ? 6 : 4;
  const Index vectors = dim / kLanes;
  for (Index n = 0; n < pieces_of(vectors, kMost); ++n) {
    const Index begin = piece_begin(vectors, kMost, n);
    with_vectors<kMost>(piece_begin(vectors, kMost, n + 1) - begin, [&](auto width) {
      value_tile<E, R, decltype(width)::value, kFetch>(v, count, begin * kLanes, p, y, dim, ahead);
    });
  }
}

// ---- what a row sees of a chunk

/// Visible keys within a chunk, counted from it: two ranges, in order. `early` is empty where one
/// range has them all.
struct Seen {
  KeyRange early, late;
};

HWY_INLINE bool is_empty(KeyRange range) { return range.end <= range.begin; }

HWY_INLINE KeyRange within(KeyRange range, KeyRange chunk) {
  const KeyRange cut = intersect(range, chunk);
  return is_empty(cut) ? KeyRange{} : KeyRange{cut.begin - chunk.begin, cut.end - chunk.begin};
}

HWY_INLINE Seen seen_in(const VisibleKeys& visible, KeyRange chunk) {
  const KeyRange sinks = within(visible.sinks, chunk), near = within(visible.near, chunk);
  if (is_empty(sinks)) return {{near.begin, near.begin}, near};
  if (is_empty(near)) return {{sinks.begin, sinks.begin}, sinks};
  if (sinks.end < near.begin) return {sinks, near};
  return {{sinks.begin, sinks.begin}, {sinks.begin, max_of(sinks.end, near.end)}};  // near is later
}

/// Scores of a row outside of what it sees become -inf, up to whole vectors.
HWY_INLINE void hide(const Seen& seen, Index count, float* s) {
  for (Index j = 0; j < seen.early.begin; ++j) s[j] = -INFINITY;
  for (Index j = seen.early.end; j < seen.late.begin; ++j) s[j] = -INFINITY;
  for (Index j = seen.late.end; j < padded(count); ++j) s[j] = -INFINITY;
}

// ---- the rows of one key/value head

/// A worker's memory.
struct DecodeSpace {
  float *q, *s, *rows, *w;  // [rows][padded D], [kRowBlock][kChunk], a packed step, [padded Dv]
  DecodeState state;
  Index floats;

  DecodeSpace(const DecodeCall& decode, float* memory) {
    const Index dim = padded(decode.call.sizes.head_dim);
    const Index value_dim = padded(decode.call.sizes.value_dim);
    Carver carver{memory};
    q = carver.take(decode.rows * dim);
    s = carver.take(kRowBlock * kChunk);
    rows = carver.take(kStep * max_of(dim, value_dim));
    w = carver.take(value_dim);
    state = state_at(decode, carver.take(decode.state_floats));
    floats = carver.at - memory;
  }

  static DecodeState state_at(const DecodeCall& decode, float* memory) {
    float* max = memory + decode.rows * padded(decode.call.sizes.value_dim);
    return {memory, max, max + decode.rows};
  }
};

HWY_INLINE DecodeState state_of_split(const DecodeCall& decode, Index split, Index key_head) {
  return DecodeSpace::state_at(
      decode,
      decode.states + (split * decode.call.sizes.key_heads + key_head) * decode.state_floats);
}

HWY_INLINE void clear(const DecodeState& state, Index rows, Index value_dim) {
  for (Index n = 0; n < rows * value_dim; ++n) state.y[n] = 0;
  for (Index r = 0; r < rows; ++r) state.max[r] = -INFINITY, state.sum[r] = 0;
}

/// to = factor * from.
HWY_INLINE void scale_row(const float* from, float factor, float* to, Index dim) {
  for (Index d = 0; d < dim; d += kLanes)
    hn::StoreU(hn::Mul(hn::Set(kF, factor), hn::LoadU(kF, from + d)), kF, to + d);
}

HWY_INLINE float exp_of(float x) { return hn::GetLane(exp(hn::Set(kF, x))); }

/// What sums over max `before` shrink by where the maximum is `now`; exactly 1 where it stays.
HWY_INLINE float shrink(float before, float now) {
  return before == now ? 1.0f : exp_of(before - now);
}

/// Scores of one row to p = e^(s - max), in place, and its sum and y to the new max.
HWY_INLINE void softmax_row(float* s, Index count, float& max, float& sum, float* y, Index dim) {
  Vec top = hn::Set(kF, max);
  for (Index j = 0; j < count; j += kLanes) top = hn::Max(hn::LoadU(kF, s + j), top);
  const float now = hn::GetLane(hn::MaxOfLanes(kF, top));
  const Vec reference = hn::Set(kF, now == -INFINITY ? 0 : now);
  Vec total = hn::Zero(kF);
  for (Index j = 0; j < count;) {  // kStep vectors by themselves: no sum has many terms
    Vec part = hn::Zero(kF);
    for (const Index end = min_of(count, j + kStep * kLanes); j < end; j += kLanes) {
      const Vec p = exp(hn::Sub(hn::LoadU(kF, s + j), reference));
      part = hn::Add(part, p);
      hn::StoreU(p, kF, s + j);
    }
    total = hn::Add(total, part);
  }
  const float factor = shrink(max, now);
  if (factor != 1) scale_row(y, factor, y, dim);
  sum = factor * sum + hn::GetLane(hn::SumOfLanes(kF, total));
  max = now;
}

/// y += p V over keys [step.begin, step.end), v's rows, for R rows of which each sees what `seen`
/// says: what all see together, then the rest row by row. Invisible values are not touched, be they
/// NaN.
template <class E, int R, bool kFetch>
HWY_INLINE void value_step(TypedRows v, KeyRange step, const Seen* const (&seen)[R], const float* p,
                           float* y, Index dim, Index ahead) {
  KeyRange common = step;
  for (int r = 0; r < R; ++r) common = intersect(common, seen[r]->late);
  if (is_empty(common)) common = {step.begin, step.begin};
  value_rows<E, R, kFetch>(v.from(common.begin - step.begin), common.end - common.begin,
                           p + common.begin, y, dim, ahead);
  if (common.begin == step.begin && common.end == step.end) return;
  for (int r = 0; r < R; ++r)
    for (const KeyRange rest :
         {intersect(seen[r]->early, step), intersect(seen[r]->late, {step.begin, common.begin}),
          intersect(seen[r]->late, {common.end, step.end})})
      if (!is_empty(rest))
        value_rows<E, 1, false>(v.from(rest.begin - step.begin), rest.end - rest.begin,
                                p + r * kChunk + rest.begin, y + r * dim, dim, 0);
}

/// Calls body(E(), Int<R>(), Int<fetch>(), first row) for pieces of `count` rows; the first
/// fetches ahead.
template <class Body>
HWY_INLINE void by_piece(Element type, Index count, bool fetches, const Body& body) {
  for (Index n = 0; n < pieces_of(count, kScoreRows); ++n) {
    const Index begin = piece_begin(count, kScoreRows, n);
    with_vectors<kScoreRows>(piece_begin(count, kScoreRows, n + 1) - begin, [&](auto rows) {
      with_element(type, [&](auto element) {
        if (n == 0 && fetches)
          body(element, rows, Int<1>(), begin);
        else
          body(element, rows, Int<0>(), begin);
      });
    });
  }
}

/// From a step's rows to those whose memory is fetched meanwhile, so that reading goes on while the
/// step is computed: about kAhead bytes later in the chunk, and behind its end in what is read
/// then, if that has the same stride.
HWY_INLINE Index bytes_ahead(const Chunk& chunk, Index key, Index keys, TypedRows then) {
  constexpr Index kAhead = 8192;
  const Index step_bytes = kStep * chunk.size * element_size(chunk.rows.type);
  const Index target = key + max_of(1, min_of(4, kAhead / step_bytes)) * kStep;
  if (target < keys) return (target - key) * chunk.rows.stride;
  return then.stride == chunk.rows.stride ? then.row(target - keys) - chunk.rows.row(key) : 0;
}

/// Rows [first, first + count) of a head meet one chunk of its keys.
inline void decode_chunk(const DecodeCall& decode, const DecodeSpace& space,
                         const DecodeState& state, const Chunk& k, const Chunk& v, const Seen* seen,
                         Index keys, Index first, Index count, bool is_last) {
  const Sizes& sizes = decode.call.sizes;
  const Index dim = padded(sizes.head_dim), value_dim = padded(sizes.value_dim);

  for (Index key = 0; key < keys; key += kStep) {
    const Index n = min_of(kStep, keys - key);
    const TypedRows rows = step_rows(k, key, n, space.rows);
    const Index ahead = bytes_ahead(k, key, keys, v.rows);
    by_piece(rows.type, count, !k.pack, [&](auto type, auto r, auto fetches, Index begin) {
      score_rows<decltype(type), decltype(r)::value, decltype(fetches)::value != 0>(
          rows, n, dim, space.q + (first + begin) * dim, space.s + begin * kChunk + key, ahead);
    });
  }
  for (Index r = 0; r < count; ++r) {
    const Index row = first + r;
    float* s = space.s + r * kChunk;
    hide(seen[row % sizes.queries], keys, s);
    softmax_row(s, padded(keys), state.max[row], state.sum[row], state.y + row * value_dim,
                value_dim);
  }
  for (Index key = 0; key < keys; key += kStep) {
    const Index n = min_of(kStep, keys - key);
    const TypedRows rows = step_rows(v, key, n, space.rows);
    const Index ahead = bytes_ahead(v, key, keys, is_last ? v.rows : k.rows.from(keys));
    by_piece(rows.type, count, !v.pack, [&](auto type, auto r, auto fetches, Index begin) {
      constexpr int R = decltype(r)::value;
      const Seen* their[R];
      for (int i = 0; i < R; ++i) their[i] = &seen[(first + begin + i) % sizes.queries];
      value_step<decltype(type), R, decltype(fetches)::value != 0>(
          rows, {key, key + n}, their, space.s + begin * kChunk,
          state.y + (first + begin) * value_dim, value_dim, ahead);
    });
  }
}

HWY_INLINE Index query_head(const DecodeCall& decode, Index key_head, Index row) {
  const Sizes& sizes = decode.call.sizes;
  return key_head * (sizes.query_heads / sizes.key_heads) + row / sizes.queries;
}

/// z, lse and c of one row from its state.
inline void finish_row(const DecodeCall& decode, const DecodeSpace& space, const DecodeState& state,
                       Index b, Index key_head, Index row) {
  const Call& call = decode.call;
  const Index size = call.sizes.value_dim, dim = padded(size);
  const Index h = query_head(decode, key_head, row), t = row % call.sizes.queries;
  const Index at = (b * call.sizes.query_heads + h) * call.sizes.queries + t;
  float *y = state.y + row * dim, max = state.max[row], sum = state.sum[row], factor = 1;
  if (call.sink_logits) {
    const float sink = call.sink_logits[h];
    const float now = sink > max ? sink : max;
    factor = shrink(max, now);
    sum = factor * sum + shrink(sink, now);
    max = now;
  }
  scale_row(y, sum == 0 ? 0 : factor / sum, y, dim);
  if (!all_finite(y, dim, 1, size)) remake_row(call, b, h, t, y);

  const Index own = call.mask.own_offset + t;
  call.c[at] = 0;
  if (contains(visible_keys(call.mask, b, t), own)) {
    load_row(row_at(call.v, call.type, b, key_head, own), call.type, call.v.element, size, space.w);
    call.c[at] = exclude_row(y, space.w, size, strength_of(call, b, h, t), call.eps);
  }
  call.lse[at] = static_cast<float>(log_sum_exp(SoftmaxState<double>{max, sum}));
  store_row(y, row_at(call.z, call.type, b, h, t), call.type, call.z.element, size);
}

// ---- the table's entries

std::int64_t decode_floats(const DecodeCall& decode) { return DecodeSpace(decode, nullptr).floats; }

/// One split of the keys of sequence b, head key_head; all of it where there is but one.
void decode_split(const DecodeCall& decode, std::int64_t b, std::int64_t key_head,
                  std::int64_t split, float* workspace) {
  const Call& call = decode.call;
  const Sizes& sizes = call.sizes;
  const DecodeSequence& sequence = decode.sequences[b];
  const DecodeSpace space(decode, workspace);
  const bool alone = sequence.splits == 1;
  const DecodeState state = alone ? space.state : state_of_split(decode, split, key_head);
  const Index dim = padded(sizes.head_dim), rows = decode.rows;
  clear(state, rows, padded(sizes.value_dim));
  VisibleKeys visible[kDecodeQueries];
  for (Index t = 0; t < sizes.queries; ++t) visible[t] = visible_keys(call.mask, b, t);
  for (Index r = 0; r < rows; ++r) {
    float* q = space.q + r * dim;
    load_row(row_at(call.q, call.type, b, query_head(decode, key_head, r), r % sizes.queries),
             call.type, call.q.element, sizes.head_dim, q);
    scale_row(q, static_cast<float>(call.scale), q, dim);
  }

  const Index early = sequence.early.end - sequence.early.begin;
  const Index begin = (split - sequence.first_split) * decode.split_keys;
  const Index end = min_of(begin + decode.split_keys, keys_of(sequence));
  for (Index at = begin, next; at < end; at = next) {
    next = min_of(end, at + (rows <= kRowBlock ? kChunk : kShortChunk));
    if (at < early) next = min_of(next, early);  // a chunk lies in one range
    const Index first = at < early ? sequence.early.begin + at : sequence.late.begin + at - early;
    const KeyRange keys{first, first + next - at};
    Seen seen[kDecodeQueries];
    for (Index t = 0; t < sizes.queries; ++t) seen[t] = seen_in(visible[t], keys);
    const Chunk k = chunk_of(call, call.k, sizes.head_dim, rows, b, key_head, keys.begin);
    const Chunk v = chunk_of(call, call.v, sizes.value_dim, rows, b, key_head, keys.begin);
    for (Index row = 0; row < rows; row += kRowBlock)
      decode_chunk(decode, space, state, k, v, seen, next - at, row, min_of(kRowBlock, rows - row),
                   next == end);
  }
  if (alone)
    for (Index r = 0; r < rows; ++r) finish_row(decode, space, state, b, key_head, r);
}

/// The splits of sequence b, head key_head, in order: one state, then z, lse and c.
void decode_merge(const DecodeCall& decode, std::int64_t b, std::int64_t key_head,
                  float* workspace) {
  const DecodeSequence& sequence = decode.sequences[b];
  if (sequence.splits == 1) return;
  const DecodeSpace space(decode, workspace);
  const DecodeState& whole = space.state;
  const Index dim = padded(decode.call.sizes.value_dim);
  clear(whole, decode.rows, dim);
  for (Index n = 0; n < sequence.splits; ++n) {
    const DecodeState part = state_of_split(decode, sequence.first_split + n, key_head);
    for (Index r = 0; r < decode.rows; ++r) {
      const float before = whole.max[r];
      const float now = part.max[r] > before ? part.max[r] : before;
      const float old = shrink(before, now), added = shrink(part.max[r], now);
      float* y = whole.y + r * dim;
      for (Index d = 0; d < dim; d += kLanes) {
        const Vec kept = hn::Mul(hn::Set(kF, old), hn::LoadU(kF, y + d));
        hn::StoreU(hn::MulAdd(hn::Set(kF, added), hn::LoadU(kF, part.y + r * dim + d), kept), kF,
                   y + d);
      }
      whole.sum[r] = old * whole.sum[r] + added * part.sum[r];
      whole.max[r] = now;
    }
  }
  for (Index r = 0; r < decode.rows; ++r) finish_row(decode, space, whole, b, key_head, r);
}

}  // namespace
}  // namespace xsa::kernels::cpu
