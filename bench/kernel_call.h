// One fp32 call of the kernels with memory of its own, as the Torch-free benchmarks make it.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "xsa/base/rng.h"
#include "xsa/kernels/attention.h"

namespace xsa::bench {

struct Shape {
  std::int64_t heads = 12, length = 512, dim = 64;  // B = 1, K = H, S = T, Dv = D
  bool is_causal = true;
  double strength = 1;
};

/// q, k, v and dz are normal numbers; z, lse and c are filled by forward(params).
struct KernelCall {
  explicit KernelCall(const Shape& shape)
      : memory(8 * shape.heads * shape.length * shape.dim), rows(2 * shape.heads * shape.length) {
    Rng rng(1);
    for (float& value : memory) value = static_cast<float>(rng.normal());
    params.batch = 1, params.query_heads = params.key_heads = shape.heads;
    params.queries = params.keys = shape.length;
    params.head_dim = params.value_dim = shape.dim;
    params.is_causal = shape.is_causal, params.strength = shape.strength;
    params.scale = 1 / std::sqrt(static_cast<double>(shape.dim));
    const std::int64_t head = shape.length * shape.dim, size = shape.heads * head;
    const std::array<std::int64_t, 4> dense{size, head, shape.dim, 1};
    float* next = memory.data();
    for (auto* input : {&params.q, &params.k, &params.v, &params.dz})
      *input = {next, dense}, next += size;
    for (auto* output : {&params.z, &params.dq, &params.dk, &params.dv})
      *output = {next, dense}, next += size;
    params.lse = rows.data(), params.c = rows.data() + shape.heads * shape.length;
  }
  KernelCall(const KernelCall&) = delete;
  KernelCall& operator=(const KernelCall&) = delete;

  /// Visible (query, key) pairs of all heads: 4 D FLOPs each forward, 10 D backward.
  double pairs() const {
    const auto heads = static_cast<double>(params.query_heads);
    const auto length = static_cast<double>(params.queries);
    return heads * length * (params.is_causal ? (length + 1) / 2 : length);
  }

  std::vector<float> memory, rows;
  kernels::AttentionParams params;
};

}  // namespace xsa::bench
