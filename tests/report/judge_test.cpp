#include "xsa/report/judge.h"

#include <gmock/gmock.h>

#include <limits>
#include <utility>
#include <vector>

#include "tests/support/temp_folder.h"
#include "xsa/report/comparison.h"

namespace xsa::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// The summary of one pair of runs a seed: {standard, exclusive} validation losses.
Json summary_of(const std::vector<std::pair<double, double>>& losses) {
  std::vector<RunRecord> runs;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const auto seed = static_cast<std::int64_t>(i);
    runs.push_back({"standard", seed, "s", {{"validation_loss", losses[i].first}}, nullptr});
    runs.push_back({"exclusive", seed, "e", {{"validation_loss", losses[i].second}}, nullptr});
  }
  return summarize_runs(runs);
}

std::string verdict_of(const std::vector<std::pair<double, double>>& losses) {
  return summary_of(losses)["verdict"].get<std::string>();
}

Outcome outcome_of(const std::vector<std::pair<double, double>>& losses) {
  return judge(summary_of(losses)).outcome;
}

TEST(Verdict, OfOneSeedSaysThatNoSpreadIsKnown) {
  EXPECT_THAT(verdict_of({{2.247, 2.135}}),
              AllOf(StartsWith("XSA ended with the lower validation loss: 2.1350 against 2.2470"),
                    HasSubstr("a difference of −0.1120 (perplexity −10.6\u00a0%)"),
                    HasSubstr("One seed only, so no spread is known")));
  EXPECT_THAT(verdict_of({{2.135, 2.247}}),
              AllOf(StartsWith("XSA ended with the higher validation loss: 2.2470 against 2.1350"),
                    HasSubstr("+0.1120 (perplexity +11.9\u00a0%)"), HasSubstr("One seed only")));
}

TEST(Verdict, OfTwoSeedsGivesTheirSpreadAndNoInterval) {
  EXPECT_THAT(verdict_of({{2.247, 2.135}, {2.224, 2.148}}),
              AllOf(StartsWith("XSA ended with the lower validation loss: "),
                    HasSubstr("lower with 2 of 2 seeds"), HasSubstr("spread by 0.0255"),
                    HasSubstr("too few for an interval"), Not(HasSubstr("t interval"))));
}

TEST(Verdict, OfThreeSeedsGivesThePairedInterval) {
  // Differences -0.10, -0.12, -0.14: mean -0.12, s 0.02, half width 4.3027 * 0.02 / sqrt(3).
  const std::vector<std::pair<double, double>> lower = {{2.2, 2.1}, {2.3, 2.18}, {2.4, 2.26}};
  EXPECT_THAT(verdict_of(lower),
              AllOf(StartsWith("XSA wins: "), HasSubstr("lower with 3 of 3 seeds"),
                    HasSubstr("interval −0.1697 to −0.0703: it leaves out 0")));
  const std::vector<std::pair<double, double>> higher = {{2.1, 2.2}, {2.18, 2.3}, {2.26, 2.4}};
  EXPECT_THAT(verdict_of(higher),
              AllOf(StartsWith("XSA loses: "), HasSubstr("lower with 0 of 3 seeds"),
                    HasSubstr("interval +0.0703 to +0.1697: it leaves out 0")));
}

TEST(Verdict, IsOpenWithinTheSpread) {
  EXPECT_EQ(outcome_of({{2.2, 2.1}, {2.2, 2.3001}}), Outcome::kUndecided);  // the mean is tiny
  EXPECT_THAT(verdict_of({{2.2, 2.1}, {2.2, 2.28}}),
              StartsWith("The difference is within the spread of the seeds: "));
  EXPECT_THAT(verdict_of({{2.2, 2.1}, {2.2, 2.28}, {2.2, 2.18}}),
              AllOf(StartsWith("The difference is within the spread of the seeds: "),
                    HasSubstr("lower with 2 of 3 seeds"),
                    HasSubstr("it contains 0, so these runs do not tell which is better")));
}

TEST(Verdict, IsOpenWhereTheIntervalHoldsZeroThoughEverySeedAgrees) {
  // Differences -0.02, -0.10, -0.18: mean -0.10 beyond the spread of 0.08, yet +-0.199 about it.
  EXPECT_THAT(verdict_of({{2.2, 2.18}, {2.2, 2.1}, {2.2, 2.02}}),
              AllOf(StartsWith("Too few seeds to tell: "), HasSubstr("lower with 3 of 3 seeds"),
                    HasSubstr("contains 0")));
}

TEST(Verdict, FindsNoDifferenceToSpeakOf) {
  for (const auto& losses : std::vector<std::vector<std::pair<double, double>>>{
           {{2.2, 2.2}},
           {{2.2, 2.2015}},
           {{2.2, 2.1985}},
           {{2.2, 2.2}, {2.3, 2.3}},
           {{2.2, 2.2}, {2.3, 2.3}, {2.4, 2.4}},
           {{2.2, 2.201}, {2.3, 2.3011}, {2.4, 2.4012}}})
    EXPECT_THAT(verdict_of(losses), StartsWith("No difference to speak of: "));
  EXPECT_EQ(outcome_of({{2.2, 2.2025}}), Outcome::kHigher);
  EXPECT_EQ(outcome_of({{2.2, 2.1975}}), Outcome::kLower);
}

TEST(Verdict, IsWithheldWithoutAPairOfFiniteLosses) {
  EXPECT_EQ(verdict_of({{2.2, kNan}, {kNan, 2.1}}),
            "No verdict: no seed has a finite validation loss of both runs.");
  EXPECT_EQ(verdict_of({}), "No verdict: no seed has a finite validation loss of both runs.");
}

TEST(Verdict, SaysHowManySeedsItLeavesOut) {
  EXPECT_THAT(verdict_of({{2.247, 2.135}, {2.2, kNan}}),
              AllOf(HasSubstr("One seed only"), HasSubstr("2.1350 against 2.2470"),
                    HasSubstr("Left out: 1 seed without a finite validation loss of both runs.")));
}

TEST(StudentT, AgreesWithTheTables) {
  EXPECT_NEAR(student_t95(1), 12.7062, 1e-4);
  EXPECT_NEAR(student_t95(2), 4.3027, 1e-4);
  EXPECT_NEAR(student_t95(8), 2.3060, 1e-4);
  EXPECT_NEAR(student_t95(9), 2.2622, 1e-4);
  EXPECT_NEAR(student_t95(30), 2.0423, 1e-4);
  EXPECT_NEAR(student_t95(1000), 1.9623, 1e-4);
  EXPECT_THAT(testing::error_of([] { student_t95(0); }), HasSubstr("at least 1 degree"));
}

}  // namespace
}  // namespace xsa::report
