#include "xsa/generate/sampler.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/support/temp_folder.h"

namespace xsa::generate {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using text::Token;

std::vector<float> logarithms(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p) + 3));
  return logits;
}

/// How often each token is drawn.
std::map<Token, double> shares(const Sampling& sampling, const std::vector<float>& logits) {
  constexpr int kDraws = 20000;
  Sampler sampler(sampling);
  Rng rng(5);
  std::map<Token, double> result;
  for (int n = 0; n < kDraws; ++n) result[sampler.next(logits, rng)] += 1.0 / kDraws;
  return result;
}

std::set<Token> drawn(const Sampling& sampling, const std::vector<float>& logits) {
  std::set<Token> result;
  for (const auto& [token, share] : shares(sampling, logits)) result.insert(token);
  return result;
}

void expect_shares(const Sampling& sampling, const std::vector<double>& probabilities,
                   const std::vector<double>& expected) {
  const auto got = shares(sampling, logarithms(probabilities));
  for (std::size_t n = 0; n < expected.size(); ++n) {
    const auto found = got.find(static_cast<Token>(n));
    EXPECT_NEAR(found == got.end() ? 0 : found->second, expected[n], 0.015) << n;
  }
}

TEST(Sampler, DrawsByTheModelsProbabilities) {
  expect_shares({}, {0.5, 0.125, 0.25, 0.125}, {0.5, 0.125, 0.25, 0.125});
}

TEST(Sampler, FlattensWithTemperature) {
  // Squares and square roots of 1 : 4 : 16.
  expect_shares({.temperature = 0.5}, {1, 4, 16}, {1 / 273., 16 / 273., 256 / 273.});
  expect_shares({.temperature = 2}, {1, 4, 16}, {1 / 7., 2 / 7., 4 / 7.});
}

TEST(Sampler, ComesToTheLikeliestAsTheTemperatureFalls) {
  for (const double temperature : {1e-3, 1e-50, 1e-310})
    EXPECT_THAT(drawn({.temperature = temperature}, {1, 2, 3, 2.5}), UnorderedElementsAre(2));
}

TEST(Sampler, TakesTheFirstOfTheLikeliestAtTemperatureZero) {
  Rng rng(1);
  const std::string before = rng.state();
  EXPECT_EQ(Sampler({.temperature = 0}).next(std::vector<float>{1, 3, -2, 3}, rng), 1u);
  EXPECT_EQ(Sampler({.temperature = 0}).next(std::vector<float>{-1e30f, -INFINITY}, rng), 0u);
  EXPECT_EQ(rng.state(), before);
}

TEST(Sampler, DrawsAmongTheKLikeliest) {
  expect_shares({.top_k = 2}, {0.1, 0.4, 0.1, 0.2, 0.2}, {0, 2 / 3., 0, 1 / 3., 0});
  EXPECT_THAT(drawn({.top_k = 1}, logarithms({0.3, 0.4, 0.3})), UnorderedElementsAre(1));
  EXPECT_THAT(drawn({.top_k = 9}, logarithms({0.3, 0.4, 0.3})), UnorderedElementsAre(0, 1, 2));
  // Their weights are all 0 but the first's: the logits tell them apart.
  EXPECT_THAT(drawn({.top_k = 2}, {0, -1000, -900}), UnorderedElementsAre(0));
}

TEST(Sampler, DrawsAmongTheFewestThatReachTopP) {
  const std::vector<float> logits = logarithms({0.1, 0.4, 0.2, 0.3});
  EXPECT_THAT(drawn({.top_p = 0}, logits), UnorderedElementsAre(1));
  EXPECT_THAT(drawn({.top_p = 0.39}, logits), UnorderedElementsAre(1));
  EXPECT_THAT(drawn({.top_p = 0.5}, logits), UnorderedElementsAre(1, 3));
  EXPECT_THAT(drawn({.top_p = 0.89}, logits), UnorderedElementsAre(1, 2, 3));
  EXPECT_THAT(drawn({.top_p = 0.95}, logits), UnorderedElementsAre(0, 1, 2, 3));
  expect_shares({.top_p = 0.6}, {0.1, 0.4, 0.2, 0.3}, {0, 4 / 7., 0, 3 / 7.});
}

TEST(Sampler, SortsOnlyAsFarAsTopPReaches) {
  // Equal probabilities: lower ids first, through several pieces of the sort.
  const std::vector<float> logits(1000, 1.5f);
  const std::set<Token> got = drawn({.top_p = 0.2995}, logits);
  EXPECT_EQ(*got.rbegin(), 299u);
  EXPECT_GT(got.size(), 290u);
}

TEST(Sampler, AppliesTopPToWhatTopKLeft) {
  // Of 0.4 and 0.3 alone the first has 4/7.
  EXPECT_THAT(drawn({.top_k = 2, .top_p = 0.55}, logarithms({0.1, 0.4, 0.2, 0.3})),
              UnorderedElementsAre(1));
}

TEST(Sampler, NeverDrawsWhatIsImpossible) {
  EXPECT_THAT(drawn({}, {-INFINITY, 0, -INFINITY, 0, -INFINITY}), UnorderedElementsAre(1, 3));
}

TEST(Sampler, TakesOneNumberForEachToken) {
  Rng rng(3), other(3);
  Sampler({.top_k = 2, .top_p = 0.9}).next(logarithms({0.2, 0.5, 0.3}), rng);
  other.next();
  EXPECT_EQ(rng.state(), other.state());
}

TEST(Sampler, RefusesLogitsThatAreNotFinite) {
  for (const double temperature : {0.0, 1.0})
    for (const std::vector<float>& logits : std::vector<std::vector<float>>{
             {1, NAN, 2}, {NAN, 1}, {1, INFINITY}, {-INFINITY, -INFINITY}})
      EXPECT_THAT(xsa::testing::error_of([&] {
                    Rng rng(1);
                    Sampler({.temperature = temperature}).next(logits, rng);
                  }),
                  HasSubstr("not finite"));
}

TEST(LogProbability, IsTheLogarithmOfTheShare) {
  const std::vector<float> logits = logarithms({0.5, 0.125, 0.25, 0.125});
  EXPECT_NEAR(log_probability(logits, 0), std::log(0.5), 1e-6);
  EXPECT_NEAR(log_probability(logits, 3), std::log(0.125), 1e-6);
  EXPECT_NEAR(log_probability(std::vector<float>{1000, 999}, 0), -std::log1p(std::exp(-1)), 1e-6);
}

}  // namespace
}  // namespace xsa::generate
