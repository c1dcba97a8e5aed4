#include "xsa/kernels/cpu/plan.h"

#include <algorithm>

namespace xsa::kernels::cpu {
namespace {

constexpr std::int64_t kQueryBlock = 192;  // its Q and dO stay in L2 while all keys pass
constexpr std::int64_t kKeyBlock = 96;     // K, V and a panel's scores stay in L1
constexpr std::int64_t kPartKeys = 256;    // about; of a head's keys in the backward
// Fewer (batch, key/value head) pairs than kBackwardTasks share their keys out among tasks, but not
// in so small shares that preparing a block of queries for each is felt, unless there are few keys.
constexpr std::int64_t kBackwardTasks = 16, kLeastTaskKeys = 768;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

Plan make_plan(const Sizes& sizes, Tile tile) {
  Plan plan;
  plan.panel = tile.lanes * tile.panel_vectors;
  plan.key_block = kKeyBlock;
  plan.query_blocks = ceil_div(sizes.queries, kQueryBlock);
  if (plan.query_blocks > 0)  // blocks of one size, whole vectors
    plan.query_block =
        ceil_div(ceil_div(sizes.queries, plan.query_blocks), tile.lanes) * tile.lanes;
  plan.forward_tasks = sizes.batch * sizes.query_heads * plan.query_blocks;

  const std::int64_t wanted = std::max<std::int64_t>(1, sizes.keys / kPartKeys);
  plan.part_keys = ceil_div(ceil_div(sizes.keys, wanted), kKeyBlock) * kKeyBlock;
  const std::int64_t heads = sizes.batch * sizes.key_heads;
  if (heads * sizes.keys > 0) {
    plan.parts = ceil_div(sizes.keys, plan.part_keys);
    const std::int64_t tasks = std::max<std::int64_t>(1, kBackwardTasks / heads);
    const std::int64_t least = std::min(kLeastTaskKeys, sizes.keys / 8);
    plan.task_parts =
        std::max({ceil_div(plan.parts, tasks), ceil_div(least, plan.part_keys), std::int64_t{1}});
    plan.task_parts = std::min(plan.task_parts, plan.parts);
    plan.head_tasks = ceil_div(plan.parts, plan.task_parts);
  }
  plan.backward_tasks = heads * plan.head_tasks;
  return plan;
}

}  // namespace xsa::kernels::cpu
