// What the tests of the decode path share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/cpu/fused.h"
#include "tests/support/problem.h"
#include "xsa/kernels/attention.h"

namespace xsa::kernels {

class Decode : public EveryInstructionSet {};

/// A causal problem of one head; T <= 8 queries, the last ones, take the decode path.
inline testing::ProblemSpec decoding(std::int64_t queries, std::int64_t keys,
                                     std::int64_t dim = 16) {
  testing::ProblemSpec spec;
  spec.queries = queries, spec.keys = keys;
  spec.head_dim = spec.value_dim = dim;
  spec.is_causal = true;
  return spec;
}

/// The forward alone.
inline void decode(testing::Problem& problem, std::int64_t workers = 1) {
  const Parallel parallel = workers == 1 ? serial() : threads(workers);
  AttentionParams params = problem.params();
  params.parallel = &parallel;
  forward(params);
}

}  // namespace xsa::kernels
