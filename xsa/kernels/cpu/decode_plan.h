// The decode path: a few queries against a long cache. Its keys are cut into splits that any worker
// may take, each leaves its softmax's state, and the states are merged in order.
#pragma once

#include <vector>

#include "xsa/base/parallel.h"
#include "xsa/kernels/cpu/decode_call.h"

namespace xsa::kernels::cpu {

/// Keys of a split, where a key/value head has `rows` rows. Like decode_sequences a pure function
/// of sizes and mask, never of the number of workers or of other sequences: so are the bits.
std::int64_t decode_split_keys(std::int64_t rows);

/// What is read of each sequence, and how many splits that makes: [B].
std::vector<DecodeSequence> decode_sequences(const Call& call, std::int64_t split_keys);

/// The forward of a call with at most kDecodeQueries queries, all other options at will.
void decode(const Kernels& kernels, const Call& call, const Parallel& parallel);

}  // namespace xsa::kernels::cpu
