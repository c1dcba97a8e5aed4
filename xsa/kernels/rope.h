// Rotary positions (RoFormer, arXiv 2104.09864) in the half-split layout, as queries and keys take
// them before attention:
//
//   (x_i, x_{i + D/2}) turns by the angle t base^(-2i/D),   i = 0 .. D/2 - 1,   t the position
//
// The angles come as tables of cosines and sines. Turning back (inverse) is the gradient: dx is dy
// turned back. Inputs are trusted here: the operator (xsa/op) checks them at the door.
#pragma once

#include <cstdint>
#include <vector>

#include "xsa/kernels/attention.h"

namespace xsa::kernels {

/// One call; filled by name. B batch, H heads, T tokens, D head dimension (any even number).
struct RotaryParams {
  std::int64_t batch = 0, heads = 0, tokens = 0, head_dim = 0;
  Type type = Type::kFloat32;  // of x and y; not kFloat64

  View x;                      // [B, H, T, D], D densely: stride[3] is 1
  MutableView y;               // [B, H, T, D], the same; may be x itself
  const float* cos = nullptr;  // [T, D / 2], contiguous: of the angles of these T tokens
  const float* sin = nullptr;  // the same
  bool inverse = false;        // turns back

  const Parallel* parallel = nullptr;  // null: the calling thread alone
};

/// One pass, in fp32. Bits depend on the input alone.
///
/// FLOPs: 3 an element. Bytes: x read and y written once, and 4 D a token for the tables.
void rotary_embedding(const RotaryParams& params);

/// The definition in code: scalar, double, any Type as input. y, [B, H, T, D].
std::vector<double> reference_rotary_embedding(const RotaryParams& params);

}  // namespace xsa::kernels
