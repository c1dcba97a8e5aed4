#include "xsa/tasks/metrics.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/support/temp_folder.h"

namespace xsa::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Sample sample_of(std::vector<std::int64_t> lengths, std::int64_t gold) {
  Sample sample{.gold = gold, .lengths = lengths};
  sample.requests.resize(lengths.size());
  return sample;
}

std::vector<Score> scores_of(const std::vector<double>& log_likelihoods) {
  std::vector<Score> scores;
  for (const double value : log_likelihoods) scores.push_back({value, false});
  return scores;
}

std::vector<double> piqa(const Sample& sample, const std::vector<double>& log_likelihoods) {
  return sample_metrics(find_task("piqa"), sample, scores_of(log_likelihoods));
}

TEST(SampleMetrics, TakeTheFirstOfEqualChoices) {
  EXPECT_THAT(piqa(sample_of({4, 4}, 0), {-2, -2}), ElementsAre(1, 1));
  EXPECT_THAT(piqa(sample_of({4, 4}, 1), {-2, -2}), ElementsAre(0, 0));
}

TEST(SampleMetrics, DivideByCharactersForTheNormalizedOne) {
  EXPECT_THAT(piqa(sample_of({2, 10}, 1), {-2, -5}), ElementsAre(0, 1));
  EXPECT_THAT(piqa(sample_of({2, 10}, 0), {-2, -5}), ElementsAre(1, 0));
}

TEST(SampleMetrics, NeverPreferAChoiceWithoutCharacters) {
  EXPECT_THAT(piqa(sample_of({0, 10}, 1), {-1, -500}), ElementsAre(0, 1));
}

TEST(SampleMetrics, OfLambadaAreTheWordsLikelihoodAndWhetherItIsSaid) {
  const Task& task = find_task("lambada_openai");
  const std::vector<Score> said = {{-1.5, true}}, unsaid = {{-0.1, false}};
  EXPECT_THAT(sample_metrics(task, sample_of({4}, 0), said), ElementsAre(-1.5, 1));
  EXPECT_THAT(sample_metrics(task, sample_of({4}, 0), unsaid), ElementsAre(-0.1, 0));
}

TEST(TaskFigures, HaveNoErrorForOneSampleOrWhereNoneIsWanted) {
  const Task& task = find_task("boolq");
  EXPECT_FALSE(task_figures(task, {{1}}, {})[0].error);
  EXPECT_FALSE(task_figures(task, {{1}, {0}}, {.resamples = 0})[0].error);
  EXPECT_DOUBLE_EQ(*task_figures(task, {{1}, {0}}, {})[0].error, 0.5);
  EXPECT_THAT(xsa::testing::error_of([&] { task_figures(task, {}, {}); }), HasSubstr("no samples"));
}

TEST(TaskFigures, LeaveOutAnErrorBeyondADouble) {
  std::vector<std::vector<double>> values(20, {-1, 1});
  values[0][0] = -9000;  // drawn twice in one resampling, the perplexity is beyond a double
  const auto figures = task_figures(find_task("lambada_openai"), values, {.resamples = 1000});
  EXPECT_GT(figures[0].value, 1e100);
  EXPECT_FALSE(figures[0].error);
  EXPECT_TRUE(figures[1].error);
}

TEST(TaskFigures, APerplexityBeyondADoubleDoesNotCostTheOtherFigures) {
  const std::vector<std::vector<double>> values = {{-800, 1}, {-900, 0}};
  const auto figures = task_figures(find_task("lambada_openai"), values, {.resamples = 1000});
  EXPECT_TRUE(std::isinf(figures[0].value));
  EXPECT_FALSE(figures[0].error);
  EXPECT_DOUBLE_EQ(figures[1].value, 0.5);
}

TEST(TaskFigures, ReportProgressOfThePerplexity) {
  std::vector<std::string> reports;
  const std::vector<std::vector<double>> values = {{-1, 1}, {-2, 0}};
  const auto figures =
      task_figures(find_task("lambada_standard"), values,
                   {.resamples = 2000, .progress = [&](const std::string& task, std::int64_t done) {
                      reports.push_back(task + std::to_string(done));
                    }});
  EXPECT_THAT(reports, ElementsAre("lambada_standard1000", "lambada_standard2000"));
  EXPECT_EQ(figures[0].metric, Metric::kPerplexity);
  EXPECT_DOUBLE_EQ(figures[1].value, 0.5);
}

}  // namespace
}  // namespace xsa::tasks
