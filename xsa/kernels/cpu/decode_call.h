// The decode path's data between its door (decode.cpp) and the code of one instruction set
// (decode.h). Plain data only, as in call.h.
#pragma once

#include "xsa/kernels/core/mask.h"
#include "xsa/kernels/cpu/call.h"

namespace xsa::kernels::cpu {

/// A forward of so few queries is bound by reading its keys, and takes the decode path.
constexpr std::int64_t kDecodeQueries = 8;

/// The keys that some query of one sequence sees: two ranges, in order, that do not touch; early is
/// empty where one range has them all. They are cut into splits, counted over all sequences.
struct DecodeSequence {
  KeyRange early, late;
  std::int64_t first_split = 0, splits = 1;
};

XSA_HOST_DEVICE std::int64_t keys_of(const DecodeSequence& sequence) {
  return sequence.early.end - sequence.early.begin + sequence.late.end - sequence.late.begin;
}

struct DecodeCall {
  const Call& call;
  std::int64_t rows = 0;        // of a key/value head: the query heads of its group times T
  std::int64_t split_keys = 0;  // keys of a split; a sequence's last has what is left
  const DecodeSequence* sequences = nullptr;  // [B]
  float* states = nullptr;                    // [splits][K][state_floats], see DecodeState
  std::int64_t state_floats = 0;
};

/// What one key/value head's rows know of some keys: y = sum_j e^(s_j - max) v_j, and the same sum
/// without v.
struct DecodeState {
  float *y, *max, *sum;  // [rows][padded Dv], [rows], [rows]
};

}  // namespace xsa::kernels::cpu
