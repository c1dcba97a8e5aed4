#include "xsa/base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "xsa/base/error.h"

namespace xsa {
namespace {

TEST(Rng, SeedsBySplitmix64) {
  // splitmix64's published first outputs from 0 become the four words.
  EXPECT_EQ(Rng(0).state(), "e220a8397b1dcdaf6e789e6aa1b965f406c45d188009454ff88bb8a8724c81ec");
}

TEST(Rng, DrawsThePublishedXoshiro256StarStarNumbers) {
  // Test vector of the rand_xoshiro crate: state 1, 2, 3, 4.
  Rng rng = Rng::from_state("0000000000000001000000000000000200000000000000030000000000000004");
  for (const std::uint64_t expected :
       {11520ULL, 0ULL, 1509978240ULL, 1215971899390074240ULL, 1216172134540287360ULL,
        607988272756665600ULL, 16172922978634559625ULL, 8476171486693032832ULL,
        10595114339597558777ULL, 2904607092377533576ULL})
    EXPECT_EQ(rng.next(), expected);
}

TEST(Rng, ContinuesExactlyFromItsState) {
  Rng rng(1337);
  for (int i = 0; i < 100; ++i) rng.next();
  Rng copy = Rng::from_state(rng.state());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rng.next(), copy.next());
  EXPECT_EQ(rng.state(), copy.state());
}

TEST(Rng, RefusesWhatIsNoState) {
  const std::string good = Rng(1).state();
  EXPECT_THROW(Rng::from_state(""), Error);
  EXPECT_THROW(Rng::from_state(good.substr(1)), Error);
  EXPECT_THROW(Rng::from_state(good + "0"), Error);
  EXPECT_THROW(Rng::from_state("g" + good.substr(1)), Error);
  EXPECT_THROW(Rng::from_state(std::string(64, '0')), Error);
}

TEST(Rng, BelowReachesEveryValueEquallyOften) {
  Rng rng(7);
  std::array<int, 6> hits{};
  for (int i = 0; i < 60000; ++i) ++hits.at(rng.below(6));
  for (const int count : hits) EXPECT_NEAR(count, 10000, 500);  // 5.5 standard deviations
}

TEST(Rng, BelowIsUnbiasedForABoundNearTheWholeRange) {
  // Plain `next() % bound` would land in the lower half two times of three.
  Rng rng(7);
  const std::uint64_t bound = 3ULL << 62;
  int low = 0;
  for (int i = 0; i < 10000; ++i) low += rng.below(bound) < (1ULL << 62) ? 1 : 0;
  EXPECT_NEAR(low, 3333, 300);
  EXPECT_EQ(rng.below(1), 0U);
  EXPECT_THROW(rng.below(0), Error);
}

TEST(Rng, UniformStaysBelowOneWithTheRightMoments) {
  Rng rng(7);
  double sum = 0, squares = 0;
  const int count = 100000;
  for (int i = 0; i < count; ++i) {
    const double value = rng.uniform();
    ASSERT_TRUE(value >= 0 && value < 1);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / count, 1.0 / 2, 0.005);
  EXPECT_NEAR(squares / count, 1.0 / 3, 0.005);
}

TEST(Rng, NormalHasTheRightMoments) {
  Rng rng(7);
  double sum = 0, squares = 0, fourths = 0;
  const int count = 100000;
  for (int i = 0; i < count; ++i) {
    const double value = rng.normal();
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
    fourths += value * value * value * value;
  }
  EXPECT_NEAR(sum / count, 0, 0.02);
  EXPECT_NEAR(squares / count, 1, 0.03);
  EXPECT_NEAR(fourths / count, 3, 0.2);
}

TEST(Rng, PermutationHoldsEveryIndexOnceAndDependsOnTheSeed) {
  std::vector<std::int64_t> order = Rng(3).permutation(1000);
  EXPECT_EQ(order, Rng(3).permutation(1000));
  EXPECT_NE(order, Rng(4).permutation(1000));
  std::sort(order.begin(), order.end());
  for (std::int64_t i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_TRUE(Rng(3).permutation(0).empty());
  EXPECT_EQ(Rng(3).permutation(1), std::vector<std::int64_t>{0});
  EXPECT_THROW(Rng(3).permutation(-1), Error);
}

TEST(Rng, PermutationsOfThreeAreEquallyOften) {
  Rng rng(11);
  std::map<std::vector<std::int64_t>, int> hits;
  for (int i = 0; i < 60000; ++i) ++hits[rng.permutation(3)];
  ASSERT_EQ(hits.size(), 6U);
  for (const auto& [order, count] : hits) EXPECT_NEAR(count, 10000, 500);
}

}  // namespace
}  // namespace xsa
