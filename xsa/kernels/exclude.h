// The exclusion alone, for callers who keep their own attention: with y [B, H, T, Dv], any
// attention's output, and w_i the value of query i's own key, own_offset + i, in its group's head,
//
//   c_i = (y_i . w_i) / max(w_i . w_i, eps^2)          z_i = y_i - strength c_i w_i
//
// (XSA (2), arXiv 2603.09078; docs/maths.md). Inputs are trusted here: the operator (xsa/op)
// checks them at the door.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "xsa/kernels/attention.h"

namespace xsa::kernels {

/// One call, forward or backward; filled by name. B batch, H query heads, K key/value heads (H = K
/// * group), T queries, S keys, Dv value dimension (any, from 1 on).
struct ExcludeParams {
  std::int64_t batch = 0, query_heads = 0, key_heads = 0, queries = 0, keys = 0, value_dim = 0;
  Type type = Type::kFloat32;  // of y v z and of their gradients; not kFloat64

  View v;  // [B, K, S, Dv]

  double strength = 1.0;                    // 0: z is y, to the bit; c is measured all the same
  double eps = 1e-12;                       // |w| below it counts as it
  std::int64_t own_offset = 0;              // query i owns key own_offset + i; own_offset + T <= S
  const float* learned_strength = nullptr;  // with learned_strength_stride; replaces strength
  std::array<std::int64_t, 3> learned_strength_stride{};  // over b, h, t; zeros where it is shared

  // Forward: reads y, writes z and c. Backward: reads z and c.
  View y;              // [B, H, T, Dv]
  MutableView z;       // [B, H, T, Dv]
  float* c = nullptr;  // [B, H, T], contiguous

  // Backward only.
  View dz;                             // [B, H, T, Dv]
  MutableView dy, dv;                  // as y and v; written whole (never accumulated into)
  float* dlearned_strength = nullptr;  // [B, H, T], contiguous, or null: -c_i g_i, unsummed

  const Parallel* parallel = nullptr;  // null: the calling thread alone
};

/// One pass over the rows; nothing is kept between them. Bits depend on the input alone. Requires
/// distinct outputs and, in backward, z and c of the forward.
///
/// FLOPs: 6 Dv a query forward, 12 Dv backward. Bytes, with e those of an element: forward reads y
/// and the queries' own v once and writes z, e Dv (2 H + K) B T; backward reads dz, z and v and
/// writes dy and dv, e Dv (3 H + 2 K) B T; and 4 a query for c.
void exclude_forward(const ExcludeParams& params);
void exclude_backward(const ExcludeParams& params);

// The definition in code: scalar, double, any Type as input.
struct ReferenceExclude {
  std::vector<double> z;  // [B, H, T, Dv]
  std::vector<double> c;  // [B, H, T]
};
struct ReferenceExcludeBackward {
  std::vector<double> dy, dv;             // shaped as y, v
  std::vector<double> dlearned_strength;  // [B, H, T]
};
ReferenceExclude reference_exclude(const ExcludeParams& params);
/// Reads the inputs, options and dz of params; computes its own forward in double.
ReferenceExcludeBackward reference_exclude_backward(const ExcludeParams& params);

}  // namespace xsa::kernels
