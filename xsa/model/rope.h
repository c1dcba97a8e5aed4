// Rotary positions (RoFormer, arXiv 2104.09864) in the half-split layout, and the cut of a fused
// projection into heads: one pass over the data, in place.
//
//   (x_i, x_{i + D/2}) turns by the angle  t base^(-2i/D),   i = 0 .. D/2 - 1,   t the position
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace xsa::model {

struct RopeTables {
  at::Tensor cos, sin;  // [context, D / 2], fp32, computed in double; undefined: no positions
};
RopeTables rope_tables(std::int64_t context, std::int64_t head_dim, double base);

struct Heads {
  at::Tensor q;     // [B, H, T, D]
  at::Tensor k, v;  // [B, K, T, D]
};

/// Cuts qkv [B, T, (H + 2 K) D] (query, key, value heads in this order) into heads and turns q and
/// k at positions 0 .. T - 1. Differentiable. The result shares qkv's memory, which is overwritten:
/// qkv must be contiguous and the caller's own temporary.
Heads split_heads(at::Tensor qkv, std::int64_t heads, std::int64_t kv_heads,
                  const RopeTables& rope);

}  // namespace xsa::model
