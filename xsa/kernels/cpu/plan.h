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
               value_dim = 0, own_offset = 0;
  bool is_causal = false;
};

struct Plan {
  std::int64_t query_block = 0;  // queries of a forward task, and of a backward step
  std::int64_t query_blocks = 0;
  std::int64_t key_block = 0;
  std::int64_t panel = 0;           // queries of a full panel
  std::int64_t forward_tasks = 0;   // (batch, query head, query block), heaviest block first
  std::int64_t parts = 1;           // backward tasks of one key/value head
  std::int64_t backward_tasks = 0;  // (batch, key/value head, part)
};

Plan make_plan(const Sizes& sizes, Tile tile);

/// Key rows [0, visible_keys_end) are all that queries before `query_end` see.
std::int64_t visible_keys_end(const Sizes& sizes, std::int64_t query_end);

/// The units (query head of the group, query block) of one part of a key/value head's backward:
/// [part_begin(part), part_begin(part + 1)), cut so that parts score about the same number of keys.
std::int64_t part_begin(const Sizes& sizes, const Plan& plan, std::int64_t part);

}  // namespace xsa::kernels::cpu
