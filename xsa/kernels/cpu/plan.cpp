#include "xsa/kernels/cpu/plan.h"

#include <algorithm>

namespace xsa::kernels::cpu {
namespace {

constexpr std::int64_t kQueryBlock = 192;  // its Q and dO stay in L2 while all keys pass
constexpr std::int64_t kKeyBlock = 96;     // K, V and a panel's scores stay in L1
// Below so many (batch, key/value head) pairs, a head's backward is cut into parts, each with
// gradients of its own that are summed afterwards.
constexpr std::int64_t kBackwardTasks = 8;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Keys that a unit (query head of the group, query block) scores.
std::int64_t unit_cost(const Sizes& sizes, const Plan& plan, std::int64_t unit) {
  const std::int64_t block = unit % plan.query_blocks;
  return visible_keys_end(sizes, std::min(sizes.queries, (block + 1) * plan.query_block));
}

}  // namespace

std::int64_t visible_keys_end(const Sizes& sizes, std::int64_t query_end) {
  return sizes.is_causal ? std::min(sizes.keys, sizes.own_offset + query_end) : sizes.keys;
}

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
  const std::int64_t units =
      heads == 0 ? 0 : sizes.query_heads / sizes.key_heads * plan.query_blocks;
  if (heads > 0)
    plan.parts = std::max<std::int64_t>(1, std::min(units, ceil_div(kBackwardTasks, heads)));
  plan.backward_tasks = heads * plan.parts;
  return plan;
}

std::int64_t part_begin(const Sizes& sizes, const Plan& plan, std::int64_t part) {
  const std::int64_t units = sizes.query_heads / sizes.key_heads * plan.query_blocks;
  std::int64_t total = 0, before = 0;
  for (std::int64_t unit = 0; unit < units; ++unit) total += unit_cost(sizes, plan, unit);
  if (part == plan.parts) return units;
  for (std::int64_t unit = 0; unit < units; ++unit) {
    if (before * plan.parts >= total * part) return unit;
    before += unit_cost(sizes, plan, unit);
  }
  return units;
}

}  // namespace xsa::kernels::cpu
