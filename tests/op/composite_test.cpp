// The composite path against both oracles, for every option.
#include <gtest/gtest.h>

#include "tests/op/cases.h"

namespace xsa::op::testing {
namespace {

/// Double, both oracles: they agree with each other and the operator with them.
void expect_both_oracles(const Case& c) {
  SCOPED_TRACE(c.name);
  const Result reference = run_reference(c);
  expect_same(run_eager(c), reference, 1e-10);
  expect_same(run_operator(c), reference, 1e-11);
}

TEST(Composite, EqualsBothOraclesForEveryOptionAlone) {
  const BackendScope composite("composite");
  for (const Case& c : single_option_cases()) expect_both_oracles(c);
}

TEST(Composite, EqualsBothOraclesForRandomOptionsTogether) {
  const BackendScope composite("composite");
  for (std::uint64_t seed = 1; seed <= 120; ++seed) expect_both_oracles(random_case(seed));
}

TEST(Composite, IsAsGoodAsEagerInEveryType) {
  const BackendScope composite("composite");
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    std::vector<Case> cases = single_option_cases();
    for (std::uint64_t seed = 1; seed <= 25; ++seed) cases.push_back(random_case(seed));
    for (const Case& exact : cases) expect_as_good_as_eager(exact.cast(type));
  }
}

}  // namespace
}  // namespace xsa::op::testing
