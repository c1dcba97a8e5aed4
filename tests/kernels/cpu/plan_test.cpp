#include "xsa/kernels/cpu/plan.h"

#include <gtest/gtest.h>

#include <array>

namespace xsa::kernels::cpu {
namespace {

constexpr Tile kTiles[] = {{4, 3}, {8, 3}, {16, 3}};

Sizes causal(std::int64_t batch, std::int64_t query_heads, std::int64_t key_heads,
             std::int64_t length) {
  return {batch, query_heads, key_heads, length, length, 64, 64, 0, true};
}

TEST(Plan, BlocksCoverTheQueriesInWholeVectors) {
  for (const Tile tile : kTiles)
    for (std::int64_t length = 1; length < 1000; length += 7) {
      const Plan plan = make_plan(causal(2, 4, 2, length), tile);
      EXPECT_EQ(plan.query_block % tile.lanes, 0);
      EXPECT_GE(plan.query_block * plan.query_blocks, length);
      EXPECT_LT(plan.query_block * (plan.query_blocks - 1), length);
      EXPECT_EQ(plan.forward_tasks, 2 * 4 * plan.query_blocks);
    }
}

TEST(Plan, PartsCoverAHeadsUnitsOnce) {
  for (const auto& [query_heads, key_heads, length] :
       {std::array<std::int64_t, 3>{1, 1, 2000}, {4, 2, 700}, {8, 1, 50}, {3, 3, 1}}) {
    const Sizes sizes = causal(1, query_heads, key_heads, length);
    const Plan plan = make_plan(sizes, kTiles[1]);
    EXPECT_EQ(part_begin(sizes, plan, 0), 0);
    EXPECT_EQ(part_begin(sizes, plan, plan.parts), query_heads / key_heads * plan.query_blocks);
    for (std::int64_t part = 0; part < plan.parts; ++part)
      EXPECT_LE(part_begin(sizes, plan, part), part_begin(sizes, plan, part + 1));
  }
}

TEST(Plan, CutsTheBackwardOnlyWhereHeadsAreFew) {
  EXPECT_EQ(make_plan(causal(1, 12, 12, 4096), kTiles[1]).parts, 1);
  EXPECT_GT(make_plan(causal(1, 1, 1, 4096), kTiles[1]).parts, 1);
  EXPECT_EQ(make_plan(causal(1, 1, 1, 100), kTiles[1]).parts, 1);
}

TEST(Plan, EmptySizesMakeNoForwardTaskAndZeroGradients) {
  const Plan no_queries = make_plan({1, 2, 2, 0, 5, 4, 4, 5, true}, kTiles[0]);
  EXPECT_EQ(no_queries.forward_tasks, 0);
  EXPECT_EQ(no_queries.backward_tasks, 2);
  EXPECT_EQ(make_plan({0, 2, 2, 5, 5, 4, 4, 0, true}, kTiles[0]).backward_tasks, 0);
}

TEST(Plan, CausalQueriesSeeKeysUpToTheLastOwnKey) {
  Sizes sizes = causal(1, 1, 1, 10);
  sizes.keys = 15, sizes.own_offset = 3;
  EXPECT_EQ(visible_keys_end(sizes, 4), 7);
  sizes.is_causal = false;
  EXPECT_EQ(visible_keys_end(sizes, 4), 15);
}

}  // namespace
}  // namespace xsa::kernels::cpu
