// What the tests of the fused kernels share: runs on every instruction set, and comparison with the
// double reference.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/problem.h"
#include "xsa/kernels/attention.h"

namespace xsa::kernels {

/// A test suite's base: TEST_P(Suite, ...) runs on one instruction set of this machine after the
/// other; the best again at the end.
class EveryInstructionSet : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { choose_instruction_set(GetParam()); }
  void TearDown() override { choose_instruction_set(""); }
};
class Fused : public EveryInstructionSet {};

std::vector<double> doubles(const std::vector<float>& values);

/// Forward and backward.
void run(testing::Problem& problem, std::int64_t workers = 1);

/// What the reference makes of a problem.
struct Expected {
  explicit Expected(testing::Problem& problem);
  ReferenceForward out;
  ReferenceBackward gradients;
};

/// Outputs and gradients of a problem that has run, within fused_tolerances; nothing written
/// between rows.
void expect_near(testing::Problem& problem, const Expected& expected);
/// Outputs and gradients of two runs, to the bit.
void expect_same_bits(const testing::Problem& actual, const testing::Problem& expected);

/// Runs on the instruction set in force.
void expect_matches_reference(const testing::ProblemSpec& spec);
/// Runs on every instruction set, in the spec's type and, where that is narrower, in fp32 too,
/// whose tolerances see more; one reference serves all.
void expect_all_match_reference(const testing::ProblemSpec& spec);

/// A causal problem of one head.
testing::ProblemSpec sized(std::int64_t queries, std::int64_t keys, std::int64_t head_dim,
                           std::int64_t value_dim);

}  // namespace xsa::kernels
