#include "xsa/kernels/cpu/plan.h"

#include <algorithm>

namespace xsa::kernels::cpu {
namespace {

constexpr std::int64_t kQueryBlock = 192;  // its Q and dO stay in L2 while all keys pass
constexpr std::int64_t kKeyBlock = 96;     // K, V and a panel's scores stay in L1
// The backward of fewer (batch, key/value head) pairs is cut into parts of their keys, but not so
// short that preparing a block of queries for each of them is felt.
constexpr std::int64_t kBackwardTasks = 32, kLeastPartKeys = 1024;

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

  const std::int64_t heads = sizes.batch * sizes.key_heads;
  if (heads == 0) return plan;
  const std::int64_t most = std::max<std::int64_t>(1, sizes.keys / kLeastPartKeys);
  const std::int64_t wanted = std::min(most, ceil_div(kBackwardTasks, heads));
  plan.part_keys = ceil_div(ceil_div(sizes.keys, wanted), kKeyBlock) * kKeyBlock;
  if (sizes.keys > 0) plan.parts = ceil_div(sizes.keys, plan.part_keys);
  plan.backward_tasks = heads * plan.parts;
  return plan;
}

}  // namespace xsa::kernels::cpu
