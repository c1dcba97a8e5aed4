#include "xsa/kernels/cpu/plan.h"

#include <gtest/gtest.h>

namespace xsa::kernels::cpu {
namespace {

constexpr Tile kTiles[] = {{4, 3}, {8, 3}, {16, 3}};

Sizes square(std::int64_t batch, std::int64_t query_heads, std::int64_t key_heads,
             std::int64_t length) {
  return {batch, query_heads, key_heads, length, length, 64, 64};
}

TEST(Plan, BlocksCoverTheQueriesInWholeVectors) {
  for (const Tile tile : kTiles)
    for (std::int64_t length = 1; length < 1000; length += 7) {
      const Plan plan = make_plan(square(2, 4, 2, length), tile);
      EXPECT_EQ(plan.query_block % tile.lanes, 0);
      EXPECT_GE(plan.query_block * plan.query_blocks, length);
      EXPECT_LT(plan.query_block * (plan.query_blocks - 1), length);
      EXPECT_EQ(plan.forward_tasks, 2 * 4 * plan.query_blocks);
    }
}

TEST(Plan, PartsCoverTheKeysInWholeKeyBlocksWhateverTheHeads) {
  for (std::int64_t keys = 1; keys < 5000; keys += 97)
    for (const std::int64_t heads : {1, 2, 12, 31, 32, 100}) {
      const Plan plan = make_plan(square(1, heads, heads, keys), kTiles[1]);
      EXPECT_EQ(plan.part_keys % plan.key_block, 0);
      EXPECT_GE(plan.part_keys * plan.parts, keys);
      EXPECT_LT(plan.part_keys * (plan.parts - 1), keys);
      EXPECT_EQ(plan.parts, make_plan(square(1, 1, 1, keys), kTiles[1]).parts);
      EXPECT_EQ(plan.backward_tasks, heads * plan.head_tasks);
      EXPECT_GE(plan.task_parts * plan.head_tasks, plan.parts);
      EXPECT_LT(plan.task_parts * (plan.head_tasks - 1), plan.parts);
    }
}

TEST(Plan, CutsAHeadsBackwardIntoTasksOnlyWhereHeadsAreFewAndKeysMany) {
  EXPECT_EQ(make_plan(square(4, 12, 12, 4096), kTiles[1]).backward_tasks, 4 * 12);
  EXPECT_GT(make_plan(square(1, 2, 2, 4096), kTiles[1]).head_tasks, 2);
  EXPECT_EQ(make_plan(square(1, 2, 2, 200), kTiles[1]).head_tasks, 1);
}

TEST(Plan, EmptySizesMakeNoForwardTaskAndZeroGradients) {
  const Plan no_queries = make_plan({1, 2, 2, 0, 5, 4, 4}, kTiles[0]);
  EXPECT_EQ(no_queries.forward_tasks, 0);
  EXPECT_EQ(no_queries.backward_tasks, 2);
  EXPECT_EQ(make_plan({0, 2, 2, 5, 5, 4, 4}, kTiles[0]).backward_tasks, 0);
}

}  // namespace
}  // namespace xsa::kernels::cpu
