#include "xsa/kernels/cpu/decode_plan.h"

#include <algorithm>

#include "xsa/kernels/cpu/workspace.h"

namespace xsa::kernels::cpu {
namespace {

std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

/// The smallest range that has both.
KeyRange hull(KeyRange a, KeyRange b) {
  if (a.end <= a.begin) return b;
  if (b.end <= b.begin) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

/// The two ranges of sequence b that its queries see together.
DecodeSequence sequence_of(const Call& call, std::int64_t b) {
  KeyRange sinks, near;
  for (std::int64_t t = 0; t < call.sizes.queries; ++t) {
    const VisibleKeys visible = visible_keys(call.mask, b, t);
    sinks = hull(sinks, visible.sinks);
    near = hull(near, visible.near);
  }
  DecodeSequence sequence;
  if (sinks.end < near.begin && sinks.begin < sinks.end)
    sequence.early = sinks, sequence.late = near;
  else
    sequence.late = hull(sinks, near);
  if (sequence.late.end < sequence.late.begin) sequence.late = {};
  return sequence;
}

}  // namespace

std::int64_t decode_split_keys(std::int64_t rows) {
  // Long enough that what a split leaves (a row of y for each of its rows) is at most a sixteenth
  // of what it reads (a row of k and of v for each of its keys).
  constexpr std::int64_t kLeast = 1024, kKeysPerRow = 16;
  return round_up(std::max(kLeast, kKeysPerRow * rows), kLeast);
}

std::vector<DecodeSequence> decode_sequences(const Call& call, std::int64_t split_keys) {
  std::vector<DecodeSequence> sequences;
  std::int64_t splits = 0;
  for (std::int64_t b = 0; b < call.sizes.batch; ++b) {
    DecodeSequence sequence = sequence_of(call, b);
    sequence.first_split = splits;
    sequence.splits = std::max<std::int64_t>(1, (keys_of(sequence) + split_keys - 1) / split_keys);
    splits += sequence.splits;
    sequences.push_back(sequence);
  }
  return sequences;
}

void decode(const Kernels& kernels, const Call& call, const Parallel& workers) {
  const Sizes& sizes = call.sizes;
  const std::int64_t heads = sizes.key_heads;
  if (sizes.batch * heads * sizes.queries == 0) return;
  DecodeCall decode{call};
  decode.rows = sizes.query_heads / heads * sizes.queries;
  decode.split_keys = decode_split_keys(decode.rows);
  const std::vector<DecodeSequence> sequences = decode_sequences(call, decode.split_keys);
  decode.sequences = sequences.data();
  decode.state_floats =
      round_up(decode.rows * (round_up(sizes.value_dim, kernels.tile.lanes) + 2), 16);

  // A few ten thousand numbers are read sooner than another thread is woken.
  constexpr std::int64_t kFewNumbers = std::int64_t{1} << 16;
  const std::int64_t numbers =
      sizes.batch * heads * sizes.keys * (sizes.head_dim + sizes.value_dim);
  const Parallel parallel = numbers <= kFewNumbers ? serial() : workers;

  const std::int64_t splits = sequences.back().first_split + sequences.back().splits;
  const bool merges = splits > sizes.batch;
  const Workspace states(merges ? splits * heads * decode.state_floats : 0);
  decode.states = states.data();
  const std::int64_t space = kernels.decode_floats(decode);
  const Workspace memory(space * parallel.workers);
  // Heads are innermost: in a [B, S, H, D] cache they share pages.
  parallel.run(splits * heads, [&](std::int64_t task, std::int64_t worker) {
    const std::int64_t split = task / heads;
    const auto after = std::upper_bound(
        sequences.begin(), sequences.end(), split,
        [](std::int64_t n, const DecodeSequence& sequence) { return n < sequence.first_split; });
    kernels.decode_split(decode, after - sequences.begin() - 1, task % heads, split,
                         memory.data() + worker * space);
  });
  if (!merges) return;
  parallel.run(sizes.batch * heads, [&](std::int64_t task, std::int64_t worker) {
    kernels.decode_merge(decode, task / heads, task % heads, memory.data() + worker * space);
  });
}

}  // namespace xsa::kernels::cpu
