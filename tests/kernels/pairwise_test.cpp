// The generator of option covers itself: a pair that it forgets is a hole that nobody sees.
#include "tests/support/pairwise.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace xsa::testing {
namespace {

using Values = std::vector<int>;

void expect_covers(const Values& values, std::uint64_t seed) {
  const auto rows = all_pairs(values, seed);
  std::set<Values> pairs;
  for (const Values& row : rows) {
    ASSERT_EQ(row.size(), values.size());
    for (int f = 0; f < static_cast<int>(row.size()); ++f) {
      ASSERT_GE(row[f], 0);
      ASSERT_LT(row[f], values[f]);
      for (int g = 0; g < f; ++g) pairs.insert({f, row[f], g, row[g]});
    }
  }
  std::size_t expected = 0;
  for (std::size_t f = 0; f < values.size(); ++f)
    for (std::size_t g = 0; g < f; ++g) expected += values[f] * values[g];
  EXPECT_EQ(pairs.size(), expected);
}

TEST(AllPairs, CoversEveryPairOfValuesOfAnyTwoFactors) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    for (const Values& values : {Values{2, 2}, {3, 1, 4}, {2, 2, 2, 2, 2, 2, 2}, {10, 6, 5, 3, 2}})
      expect_covers(values, seed);
}

TEST(AllPairs, NeedsFewRows) {
  // Nothing shorter than the product of the two largest can do; 5,308,416 would be all of them.
  const std::size_t rows = all_pairs({9, 8, 6, 4, 4, 4, 3, 2, 2, 2, 2, 2}).size();
  EXPECT_GE(rows, 72u);
  EXPECT_LT(rows, 120u);
}

TEST(AllPairs, DependsOnTheSeedAlone) {
  const Values values{5, 4, 3, 2, 2};
  EXPECT_EQ(all_pairs(values, 7), all_pairs(values, 7));
  EXPECT_NE(all_pairs(values, 7), all_pairs(values, 8));
}

}  // namespace
}  // namespace xsa::testing
