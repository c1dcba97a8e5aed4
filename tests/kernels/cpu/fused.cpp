#include "tests/kernels/cpu/fused.h"

#include "tests/support/compare.h"
#include "tests/support/tolerance.h"

namespace xsa::kernels {

using testing::Array;
using testing::is_near;
using testing::Problem;
using testing::ProblemSpec;
using testing::same_bits;

/// Every instruction set of this machine; under sanitizers, which are twenty times slower, the best
/// and the plainest, the same code in between.
std::vector<std::string> tested_sets() {
  std::vector<std::string> sets = instruction_sets();
#if defined(__SANITIZE_ADDRESS__)
  if (sets.size() > 2) sets = {sets.front(), sets.back()};
#endif
  return sets;
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Fused, ::testing::ValuesIn(tested_sets()),
                         [](const auto& each) { return each.param; });

std::vector<double> doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

void run(Problem& problem, std::int64_t workers) {
  const Parallel parallel = workers == 1 ? serial() : threads(workers);
  AttentionParams params = problem.params();
  params.parallel = &parallel;
  ASSERT_EQ(unsupported(params), "");
  forward(params);
  backward(params);
}

Expected::Expected(Problem& problem)
    : out(reference_forward(problem.params())), gradients(reference_backward(problem.params())) {}

void expect_near(Problem& problem, const Expected& expected) {
  const auto& [out, gradients] = expected;
  const testing::Tolerances tolerance = testing::fused_tolerances(problem);
  EXPECT_TRUE(is_near(problem.z.values(), out.z, tolerance.z)) << "z";
  EXPECT_TRUE(is_near(doubles(problem.lse), out.lse, tolerance.lse)) << "lse";
  EXPECT_TRUE(is_near(doubles(problem.c), out.c, tolerance.c)) << "c";
  EXPECT_TRUE(is_near(problem.dq.values(), gradients.dq, tolerance.dq)) << "dq";
  EXPECT_TRUE(is_near(problem.dk.values(), gradients.dk, tolerance.dk)) << "dk";
  EXPECT_TRUE(is_near(problem.dv.values(), gradients.dv, tolerance.dv)) << "dv";
  if (!problem.learned_strength.empty()) {
    EXPECT_TRUE(is_near(doubles(problem.dlearned_strength), gradients.dlearned_strength,
                        tolerance.dlearned_strength))
        << "dlearned_strength";
  }
  if (!problem.sink_logits.empty()) {
    const std::size_t heads = gradients.dsink_logits.size();
    std::vector<double> dsink(heads);
    for (std::size_t n = 0; n < problem.dsink_logits.size(); ++n)
      dsink[n % heads] += problem.dsink_logits[n];
    EXPECT_TRUE(is_near(dsink, gradients.dsink_logits,
                        static_cast<double>(problem.options.batch) * tolerance.dsink_logits))
        << "dsink_logits";
  }
  for (const Array* array : {&problem.z, &problem.dq, &problem.dk, &problem.dv})
    EXPECT_TRUE(array->gaps_untouched());
}

void expect_same_bits(const Problem& actual, const Problem& expected) {
  const auto same = [&](const char* name, auto output) {
    if constexpr (requires { (actual.*output).values(); })
      EXPECT_TRUE(same_bits((actual.*output).values(), (expected.*output).values())) << name;
    else
      EXPECT_TRUE(same_bits(actual.*output, expected.*output)) << name;
  };
  same("z", &Problem::z);
  same("lse", &Problem::lse);
  same("c", &Problem::c);
  same("dq", &Problem::dq);
  same("dk", &Problem::dk);
  same("dv", &Problem::dv);
  same("dlearned_strength", &Problem::dlearned_strength);
  same("dsink_logits", &Problem::dsink_logits);
}

void expect_matches_reference(const ProblemSpec& spec) {
  SCOPED_TRACE(describe(spec));
  Problem problem(spec);
  run(problem);
  expect_near(problem, Expected(problem));
}

void expect_all_match_reference(const ProblemSpec& spec) {
  SCOPED_TRACE(describe(spec));
  std::vector<Problem> problems{Problem(spec)};
  if (spec.type != Type::kFloat32) problems.push_back(problems[0].in(Type::kFloat32));
  const Expected expected(problems[0]);
  for (const std::string& name : tested_sets()) {
    choose_instruction_set(name);
    for (const Problem& problem : problems) {
      SCOPED_TRACE(name + (problem.options.type == spec.type ? "" : ", in fp32"));
      Problem copy = problem;
      run(copy);
      expect_near(copy, expected);
    }
  }
  choose_instruction_set("");
}

ProblemSpec sized(std::int64_t queries, std::int64_t keys, std::int64_t head_dim,
                  std::int64_t value_dim) {
  ProblemSpec spec;
  spec.queries = queries, spec.keys = keys;
  spec.head_dim = head_dim, spec.value_dim = value_dim;
  spec.is_causal = true;
  return spec;
}

}  // namespace xsa::kernels
