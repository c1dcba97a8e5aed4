// The operator for C++ callers: differentiable, dispatched like every ATen operator. From Python
// the same is torch.ops.xsa.attention after torch.ops.load_library("libxsa_op.so").
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <optional>
#include <string>

namespace xsa::op {

/// The options of xsa::attention; docs/operator.md says each in full. A SymInt is any integer; a
/// tracer may leave it open.
struct AttentionOptions {
  bool is_causal = false;
  std::optional<double> scale;                 // 1/sqrt(D) by default
  double strength = 1.0;                       // 1: the paper, 0: standard attention
  std::optional<at::Tensor> learned_strength;  // scalar, [H] or [B, H, T]; replaces strength
  std::optional<at::Tensor> sink_logits;       // [H]
  c10::SymInt num_sink_keys = 0;
  std::optional<c10::SymInt> window;
  std::optional<at::Tensor> cu_seqlens;   // [documents + 1], int32
  std::optional<at::Tensor> key_start;    // [B], integer
  std::optional<at::Tensor> key_end;      // [B], integer
  std::optional<c10::SymInt> own_offset;  // S - T by default (bottom-right)
  double eps = 1e-12;
};

struct AttentionResult {
  at::Tensor z;    // [B, H, T, Dv], like q
  at::Tensor lse;  // [B, H, T], fp32; natural logarithm
  at::Tensor c;    // [B, H, T], fp32; not differentiable
};

/// q [B, H, T, D], k [B, K, S, D], v [B, K, S, Dv]. Throws c10::Error naming what, expected, got
/// and remedy.
AttentionResult attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const AttentionOptions& options = {});

/// Which path that call takes and why: "cpu_fused", or "composite: float64 is for checking, and has
/// no fused kernel".
std::string attention_backend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const AttentionOptions& options = {});

}  // namespace xsa::op
