// Calls of the operator made by seed, and its two independent oracles: plain PyTorch operators with
// automatic differentiation, and the double reference of xsa/kernels.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "xsa/op/attention.h"

namespace xsa::op::testing {

/// Tensors and options of one call, with the gradients of its outputs.
struct Case {
  at::Tensor q, k, v;   // float64
  at::Tensor dz, dlse;  // float64; dlse holds float32 values (the reference reads float32)
  AttentionOptions options;
  std::string name;

  /// The same call with q, k, v and dz rounded to `type`; dlse becomes float64 or float32.
  Case cast(at::ScalarType type) const;
};

struct Sizes {
  std::int64_t batch = 2, query_heads = 4, key_heads = 2, queries = 6, keys = 9, head_dim = 5,
               value_dim = 3;
};

/// Standard normal inputs; dlse given.
Case make_case(const Sizes& sizes, std::uint64_t seed, const AttentionOptions& options = {});

/// One case for each option alone, and for what the options are easily wrong together with.
std::vector<Case> single_option_cases();
/// Sizes and options drawn together by seed.
Case random_case(std::uint64_t seed);

/// What a path gives: outputs and, in float64, gradients of sum z dz + lse dlse.
struct Result {
  at::Tensor z, lse, c, dq, dk, dv;
  at::Tensor dlearned_strength, dsink_logits;  // undefined where not asked for
};

/// xsa::op::attention on whatever path is in force, through autograd.
Result run_operator(const Case& c);
/// Softmax over a dense mask, the paper's two lines, automatic differentiation; in q's type.
Result run_eager(const Case& c);
/// PyTorch's own attention, then the paper's two lines; no lse. Takes is_causal, scale and
/// strength.
Result run_sdpa(const Case& c);
/// kernels::reference_*.
Result run_reference(const Case& c);

/// Forces a path for a scope.
class BackendScope {
 public:
  explicit BackendScope(const std::string& name);
  ~BackendScope();
};

std::vector<double> values(const at::Tensor& tensor);

/// Every output and gradient within `relative` of the expected one's largest magnitude (at least
/// 1); NaN and infinities only where expected.
void expect_same(const Result& actual, const Result& expected, double relative);

/// The operator's error against the double reference is at most twice that of eager PyTorch, the
/// same call in the same type, plus a floor (tests/support/tolerance.h).
void expect_as_good_as_eager(const Case& c);

}  // namespace xsa::op::testing
