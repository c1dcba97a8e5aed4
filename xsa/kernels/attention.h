// Exclusive self attention without any framework: the only header of kernels/ that others include.
//
//   s_ij = scale q_i . k_j      p_ij = exp(s_ij - lse_i)      y_i = sum_j p_ij v_j
//   c_i  = (y_i . w_i) / max(w_i . w_i, eps^2)                z_i = y_i - strength c_i w_i
//
// w_i is the value of the query's own key, own_offset + i (XSA (2), arXiv 2603.09078;
// docs/maths.md). Inputs are trusted here: the operator (xsa/op) checks them at the door.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xsa/base/parallel.h"

namespace xsa::kernels {

enum class Type { kFloat32, kBFloat16, kFloat16, kFloat64 };

/// A strided 4-d array: element (b, h, t, d) lies at data + b*stride[0] + h*stride[1] + t*stride[2]
/// + d*stride[3], in elements. Strides may be 0 (expanded inputs; never outputs).
struct View {
  const void* data = nullptr;
  std::array<std::int64_t, 4> stride{};
};
struct MutableView {
  void* data = nullptr;
  std::array<std::int64_t, 4> stride{};
};

/// One call, forward or backward; filled by name. B batch, H query heads, K key/value heads (H = K
/// * group), T queries, S keys, D head dimension of q and k, Dv of v and z.
struct AttentionParams {
  std::int64_t batch = 0, query_heads = 0, key_heads = 0, queries = 0, keys = 0, head_dim = 0,
               value_dim = 0;
  Type type = Type::kFloat32;  // of q k v z and of their gradients

  View q;  // [B, H, T, D]
  View k;  // [B, K, S, D]
  View v;  // [B, K, S, Dv]

  bool is_causal = false;       // query i sees keys up to its own
  double scale = 1.0;           // already resolved: 1/sqrt(D) unless the caller gave one
  double strength = 1.0;        // 0: standard attention, to the bit
  double eps = 1e-12;           // |w| below it counts as it
  std::int64_t own_offset = 0;  // query i owns key own_offset + i
  std::int64_t window = 0;      // 0: none; else |j - own| < window
  std::int64_t num_sink_keys = 0;
  const float* sink_logits = nullptr;       // [H] or null
  const float* learned_strength = nullptr;  // with learned_strength_stride; replaces strength
  std::array<std::int64_t, 3> learned_strength_stride{};  // over b, h, t; zeros where it is shared
  const std::int32_t* cu_seqlens = nullptr;               // [documents + 1] or null
  std::int64_t documents = 0;
  const std::int64_t* key_start = nullptr;  // [B] or null
  const std::int64_t* key_end = nullptr;    // [B] or null

  // Forward writes these; backward reads them.
  MutableView z;         // [B, H, T, Dv]
  float* lse = nullptr;  // [B, H, T], contiguous; natural logarithm; -inf where a row sees no key
  float* c = nullptr;    // [B, H, T], contiguous

  // Backward only.
  View dz;                      // [B, H, T, Dv]
  const float* dlse = nullptr;  // [B, H, T], contiguous, or null
  MutableView dq, dk, dv;       // written whole (never accumulated into)
  float* dlearned_strength =
      nullptr;                    // [B, H, T], contiguous, or null: -c_i g_i of every row, unsummed
  float* dsink_logits = nullptr;  // [B, H], contiguous, or null: summed over the queries

  const Parallel* parallel = nullptr;  // null: the calling thread alone
};

/// Empty if the fused CPU kernel takes this call, else the reason why not ("window is not supported
/// yet"). Looks at sizes, type and options only, never at data.
std::string unsupported(const AttentionParams& params);

/// The fused CPU kernel: flash style, no T x S matrix. Bits depend on the input alone: not on the
/// number of workers. Requires unsupported(params).empty(), distinct outputs and, in backward, z,
/// lse and c of the forward.
void forward(const AttentionParams& params);
void backward(const AttentionParams& params);

/// Instruction sets that this machine can run, best first, e.g. {"AVX3", "AVX2", "SCALAR"}.
std::vector<std::string> instruction_sets();
/// Confines the kernels of this process to one of instruction_sets(), or "" for the best again.
/// XSA_ISA in the environment does the same at start. Throws UsageError for a name that is not in
/// the list.
void choose_instruction_set(std::string_view name);

// The definition in code: scalar, double, no tiling, every option of the schema, any Type as input.
struct ReferenceForward {
  std::vector<double> z;       // [B, H, T, Dv]
  std::vector<double> lse, c;  // [B, H, T]
};
struct ReferenceBackward {
  std::vector<double> dq, dk, dv;         // shaped as q, k, v
  std::vector<double> dlearned_strength;  // [B, H, T]
  std::vector<double> dsink_logits;       // [H]
};
/// Reads the inputs and options of params; ignores z, lse, c.
ReferenceForward reference_forward(const AttentionParams& params);
/// Reads the inputs, options, dz and dlse of params; computes its own forward in double.
ReferenceBackward reference_backward(const AttentionParams& params);

}  // namespace xsa::kernels
