#include "xsa/report/curves.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>

#include "tests/support/made_comparison.h"
#include "tests/support/temp_folder.h"

namespace xsa::report {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

Curve curve(std::vector<double> step, std::vector<double> loss) {
  const std::vector<double> zeros(step.size(), 0);
  return {std::move(step), zeros, zeros, std::move(loss)};
}

TEST(Curves, MeanIsTakenAtCommonSteps) {
  const std::array<Curve, 2> curves = {curve({10, 20, 30}, {3, 2, 1}),
                                       curve({20, 25, 30}, {4, 9, 2})};
  const Curve mean = mean_of(curves);
  EXPECT_THAT(mean.step, ElementsAre(20, 30));
  EXPECT_THAT(mean.loss, ElementsAre(3, 1.5));
}

TEST(Curves, MeanOfNoneIsEmpty) { EXPECT_TRUE(mean_of({}).step.empty()); }

TEST(Curves, DifferenceIsExclusiveMinusStandard) {
  const Curve difference =
      difference_of(curve({10, 20}, {3, 1.5}), curve({5, 10, 20}, {9, 3.5, 1}));
  EXPECT_THAT(difference.step, ElementsAre(10, 20));
  EXPECT_THAT(difference.loss, ElementsAre(-0.5, 0.5));
}

TEST(Curves, SmoothingStaysCentredNearTheEnds) {
  const Curve smoothed = smooth(curve({1, 2, 3, 4, 5}, {0, 10, 20, 60, 40}), 2);
  EXPECT_THAT(smoothed.loss,
              ElementsAre(DoubleEq(0), DoubleEq(10), DoubleEq(26), DoubleEq(40), DoubleEq(40)));
  EXPECT_TRUE(smooth(Curve{}, 2).loss.empty());
}

TEST(Curves, ThinningMeansNeighbours) {
  const Curve few = thin(curve({1, 2, 3, 4, 5}, {1, 3, 5, 7, 9}), 2);
  EXPECT_THAT(few.step, ElementsAre(2, 4.5));
  EXPECT_THAT(few.loss, ElementsAre(3, 8));
  EXPECT_EQ(thin(curve({1, 2}, {1, 3}), 2).step.size(), 2u);
}

TEST(PlotData, KeepsSeedsApartAndSubtractsWithinEach) {
  const testing::TempFolder folder;
  testing::write_comparison(folder.path(), {.seeds = {3, 4}});
  const Comparison comparison = load_comparison(folder.path());
  const Json data =
      plot_data(comparison, summarize_runs({comparison.runs[0].record, comparison.runs[1].record}));
  EXPECT_EQ(data["curves"]["validation"]["standard"]["seeds"][1]["seed"], 4);
  const Json& difference = data["differences"]["validation"]["seeds"][1];
  EXPECT_EQ(difference["seed"], 4);
  EXPECT_DOUBLE_EQ(difference["loss"][5].get<double>(),
                   comparison.runs[3].validation.loss[5] - comparison.runs[2].validation.loss[5]);
  EXPECT_EQ(data["curves"]["value_cosine"]["exclusive"]["mean"]["step"],
            Json::parse("[0.0, 1.0, 2.0, 3.0]"));
}

TEST(PlotData, HoldsEachTasksFiguresAndOneOfEachText) {
  const testing::TempFolder folder;
  testing::write_comparison(folder.path(), {.seeds = {3, 4}, .evaluated = true});
  Comparison comparison = load_comparison(folder.path());
  comparison.runs[3].evaluations.clear();  // measured in some runs only
  const Json data =
      plot_data(comparison, summarize_runs({comparison.runs[0].record, comparison.runs[1].record}));
  std::vector<std::string> figures;
  for (const Json& evaluation : data["evaluations"])
    figures.push_back(evaluation["name"].get<std::string>() + " " +
                      evaluation["metric"].get<std::string>());
  EXPECT_THAT(figures, ElementsAre("held_out.txt bits_per_byte", "piqa acc", "piqa acc_norm"));
  const Json& curves = data["evaluations"][1]["curves"];
  EXPECT_EQ(curves["standard"]["seeds"].size(), 2u);
  EXPECT_EQ(curves["exclusive"]["seeds"].size(), 1u);
  EXPECT_EQ(curves["exclusive"]["mean"]["step"].size(), 6u);
}

TEST(PlotData, LimitsEachEvaluationsAxisCloseToItsFigures) {
  const testing::TempFolder folder;
  testing::write_comparison(folder.path(), {.evaluated = true});
  Comparison comparison = load_comparison(folder.path());
  const auto limits = [&](const char* metric, std::vector<double> standard,
                          std::vector<double> exclusive) {
    comparison.runs[0].evaluations = {{{"piqa", metric}, curve({1, 2}, std::move(standard))}};
    comparison.runs[1].evaluations = {{{"piqa", metric}, curve({1, 2}, std::move(exclusive))}};
    const Json data = plot_data(
        comparison, summarize_runs({comparison.runs[0].record, comparison.runs[1].record}));
    const Json& range = data["evaluations"][0]["range"];
    return range.is_null() ? std::vector<double>() : range.get<std::vector<double>>();
  };
  const auto near = [](double low, double high) {
    return ElementsAre(::testing::DoubleNear(low, 1e-9), ::testing::DoubleNear(high, 1e-9));
  };
  const double nan = std::nan("");
  EXPECT_THAT(limits("acc", {0.5, 0.5}, {0.5, 0.5}), near(0.45, 0.55));
  EXPECT_THAT(limits("acc", {0.5, 0.5}, {0.7, 0.7}), near(0.49, 0.71));
  EXPECT_THAT(limits("acc_norm", {0, 0}, {0, nan}), near(0, 0.05));
  EXPECT_THAT(limits("acc", {1, 1}, {0, 0.5}), near(0, 1));
  EXPECT_THAT(limits("perplexity", {4000, 4000}, {4000, 4000}), near(3800, 4200));
  EXPECT_THAT(limits("bits_per_byte", {3, 2}, {3, 1}), near(0.9, 3.1));
  EXPECT_THAT(limits("acc", {nan, nan}, {nan, nan}), ::testing::IsEmpty());
}

TEST(PlotData, HasNoEvaluationsWhereNoneWasAskedFor) {
  const testing::TempFolder folder;
  testing::write_comparison(folder.path(), {});
  const Comparison comparison = load_comparison(folder.path());
  const Json data =
      plot_data(comparison, summarize_runs({comparison.runs[0].record, comparison.runs[1].record}));
  EXPECT_TRUE(data["evaluations"].empty());
}

}  // namespace
}  // namespace xsa::report
