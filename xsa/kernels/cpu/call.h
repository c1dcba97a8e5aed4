// What the door hands to the code of one instruction set: plain data and plain functions only.
// Templates of the standard library must not be compiled there: the linker keeps one copy of each,
// and could keep one that other machines cannot run.
#pragma once

#include <cstdint>

#include "xsa/kernels/cpu/plan.h"

namespace xsa::kernels::cpu {

enum class Element { kFloat32, kBFloat16, kFloat16 };

/// A strided 4-d array: byte address of (0, 0, 0, 0), strides in elements.
struct Strided {
  char* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0, element = 0;
};

/// What visible_keys (core/mask.h) asks; its rules.
struct Mask {
  std::int64_t keys = 0, own_offset = 0, window = 0, num_sink_keys = 0, documents = 0;
  bool is_causal = false;
  const std::int32_t* cu_seqlens = nullptr;
  const std::int64_t *key_start = nullptr, *key_end = nullptr;
};

struct Call {
  Sizes sizes;
  Plan plan;
  Mask mask;
  Element type = Element::kFloat32;
  double scale = 1, strength = 1, eps = 0;
  const float* sink_logits = nullptr;  // [H] or null
  const float* learned_strength = nullptr;
  std::int64_t learned_batch = 0, learned_head = 0, learned_row = 0;  // its strides
  Strided q, k, v, z, dz, dq, dk, dv;
  float *lse = nullptr, *c = nullptr;
  const float* dlse = nullptr;
  float* dlearned_strength = nullptr;  // zeroed
  // Backward's memory. Sums of a part's dk and dv, fp32 [slot][task_parts part_keys][whole
  // vectors], or null where dk (dv) itself takes them; of dq, where tasks share it; the next part
  // to add to dq of a (batch, query head, query block), zeroed; -exp(sink - lse) delta [B, H, T],
  // or null.
  float *dk_sums = nullptr, *dv_sums = nullptr;
  Strided dq_sums;
  std::int32_t* turns = nullptr;
  float* dsink_rows = nullptr;
};

/// Rotary positions (xsa/kernels/rope.h).
struct RotaryCall {
  std::int64_t heads = 0, tokens = 0, head_dim = 0;
  Element type = Element::kFloat32;
  bool inverse = false;
  const float *cos = nullptr, *sin = nullptr;  // [T, D / 2]
  Strided x, y;
};

/// A linear layer of few rows (xsa/kernels/linear.h).
struct LinearCall {
  std::int64_t rows = 0, inputs = 0, outputs = 0;
  Element type = Element::kFloat32;  // of the weight
  const float* x = nullptr;
  const void* weight = nullptr;
  const float* bias = nullptr;
  float* y = nullptr;
};

struct DecodeCall;  // decode_call.h

/// The exclusion alone (xsa/kernels/exclude.h).
struct ExcludeCall {
  std::int64_t query_heads = 0, key_heads = 0, queries = 0, keys = 0, value_dim = 0, own_offset = 0;
  bool heads_in_tokens = false;  // memory order of units: [B, T, K] instead of [B, K, T]
  Element type = Element::kFloat32;
  double strength = 1, eps = 0;
  const float* learned_strength = nullptr;
  std::int64_t learned_batch = 0, learned_head = 0, learned_row = 0;  // its strides
  Strided y, v, z, dz, dy, dv;
  float *c = nullptr, *dlearned_strength = nullptr;
};

struct ExcludeKernels {
  std::int64_t (*floats)(const ExcludeCall&);  // workspace of one worker
  /// Units [begin, end) of the B K T (forward) or B K S (backward) rows of v, in memory order.
  void (*forward)(const ExcludeCall&, std::int64_t begin, std::int64_t end, float* workspace);
  void (*backward)(const ExcludeCall&, std::int64_t begin, std::int64_t end, float* workspace);
};

/// Residual sum and LayerNorm (xsa/kernels/layer_norm.h); its names.
struct AddLayerNormCall {
  std::int64_t width = 0;
  Element type = Element::kFloat32;
  double eps = 0;
  const float *weight = nullptr, *bias = nullptr;
  const void *x = nullptr, *residual = nullptr, *dy = nullptr, *dsum = nullptr;
  void *sum = nullptr, *y = nullptr, *dx = nullptr;
  float *mean = nullptr, *rstd = nullptr;
};

/// The kernels of one instruction set.
struct Kernels {
  const char* name;
  Tile tile;
  std::int64_t (*forward_floats)(const Call&);   // workspace of one worker
  std::int64_t (*backward_floats)(const Call&);  // the same
  void (*forward)(const Call&, std::int64_t task, float* workspace);
  void (*backward)(const Call&, std::int64_t task, std::int64_t slot, float* workspace);
  std::int64_t (*decode_floats)(const DecodeCall&);  // workspace of one worker
  /// `split` counts those of all sequences.
  void (*decode_split)(const DecodeCall&, std::int64_t b, std::int64_t key_head, std::int64_t split,
                       float* workspace);
  void (*decode_merge)(const DecodeCall&, std::int64_t b, std::int64_t key_head, float* workspace);
  /// Tokens [begin, end) of the B T.
  void (*rotary)(const RotaryCall&, std::int64_t begin, std::int64_t end);
  /// Rows [begin, end).
  void (*add_layer_norm)(const AddLayerNormCall&, std::int64_t begin, std::int64_t end);
  /// dx of rows [begin, end), and their sums for the gradients of weight and bias.
  void (*add_layer_norm_gradients)(const AddLayerNormCall&, std::int64_t begin, std::int64_t end,
                                   float* dweight, float* dbias);
  ExcludeKernels exclude;
  /// Outputs [begin, end) of all rows.
  void (*linear)(const LinearCall&, std::int64_t begin, std::int64_t end);
};

/// Null where this build has none for the machine's architecture.
const Kernels* avx3_kernels();
const Kernels* avx2_kernels();
const Kernels* baseline_kernels();

}  // namespace xsa::kernels::cpu
