// What is read of a cache, and how it is cut.
#include "xsa/kernels/cpu/decode_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace xsa::kernels::cpu {
namespace {

Call call_of(std::int64_t queries, std::int64_t keys) {
  Call call;
  call.sizes.batch = 1, call.sizes.queries = queries, call.sizes.keys = keys;
  call.mask.keys = keys, call.mask.own_offset = keys - queries, call.mask.is_causal = true;
  return call;
}

DecodeSequence only(const Call& call) { return decode_sequences(call, 1024).at(0); }

TEST(DecodePlan, ReadsTheWholeCacheOnceWithoutAWindow) {
  const DecodeSequence sequence = only(call_of(2, 3000));
  EXPECT_EQ(keys_of(sequence), 3000);
  EXPECT_EQ(sequence.splits, 3);
}

TEST(DecodePlan, AWindowAndSinksAreTwoRangesOrOneWhereTheyTouch) {
  Call call = call_of(3, 3000);
  call.mask.window = 100, call.mask.num_sink_keys = 4;
  const DecodeSequence apart = only(call);
  EXPECT_EQ(apart.early.begin, 0);
  EXPECT_EQ(apart.early.end, 4);
  EXPECT_EQ(apart.late.begin, 2898);
  EXPECT_EQ(apart.late.end, 3000);
  EXPECT_EQ(apart.splits, 1);
  call.mask.num_sink_keys = 2898;
  EXPECT_EQ(keys_of(only(call)), 3000);
  EXPECT_EQ(only(call).late.begin, 0);
}

TEST(DecodePlan, ASequenceWithoutVisibleKeysHasOneEmptySplit) {
  Call call = call_of(1, 10);
  const std::int64_t start = 10;
  call.mask.key_start = &start;
  EXPECT_EQ(keys_of(only(call)), 0);
  EXPECT_EQ(only(call).splits, 1);
}

TEST(DecodePlan, SplitsAreCountedOverAllSequences) {
  Call call = call_of(1, 3000);
  const std::int64_t ends[] = {3000, 1, 1500};
  call.sizes.batch = 3, call.mask.key_end = ends;
  const auto sequences = decode_sequences(call, 1024);
  EXPECT_EQ(sequences[1].first_split, 3);
  EXPECT_EQ(sequences[2].first_split, 4);
  EXPECT_EQ(sequences[2].splits, 2);
}

TEST(DecodePlan, WhatASplitLeavesIsLittleBesideWhatItReads) {
  for (const std::int64_t rows : {1, 8, 64, 65, 1024})
    EXPECT_GE(decode_split_keys(rows), std::max<std::int64_t>(1024, 16 * rows));
}

}  // namespace
}  // namespace xsa::kernels::cpu
