// How a call is cut into tiles and tasks: a pure function of sizes and instruction set, never of
// the number of workers, so that results do not depend on it either.
#pragma once

#include <cstdint>

namespace xsa::kernels::cpu {

/// What an instruction set brings: floats in a vector, and vectors of queries in a full panel.
struct Tile {
  std::int64_t lanes = 0, panel_vectors = 0;
};

struct Sizes {
  std::int64_t batch = 0, query_heads = 0, key_heads = 0, queries = 0, keys = 0, head_dim = 0,
               value_dim = 0;
};

struct Plan {
  std::int64_t query_block = 0;  // queries of a forward task, and of a backward step
  std::int64_t query_blocks = 0;
  std::int64_t key_block = 0;
  std::int64_t panel = 0;          // queries of a full panel
  std::int64_t forward_tasks = 0;  // (query block, batch, query head), last block first
  // A key/value head's keys in the backward: parts of part_keys, whole key blocks, whose gradients
  // of q are summed one after the other. They depend on the number of keys alone; how many of them
  // are one task, on the number of heads as well.
  std::int64_t parts = 1, part_keys = 0, task_parts = 1;
  std::int64_t head_tasks = 1;
  std::int64_t backward_tasks = 0;  // (task of a head, batch, key/value head), first parts first
};

Plan make_plan(const Sizes& sizes, Tile tile);

}  // namespace xsa::kernels::cpu
