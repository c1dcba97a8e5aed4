// Every field of the golden cases: what lm_eval 0.4.13 asks, in text and in tokens, and what it
// makes of made-up answers.
#include <gmock/gmock.h>

#include <map>

#include "tests/support/temp_folder.h"
#include "tests/tasks/golden.h"
#include "xsa/tasks/load.h"
#include "xsa/tasks/metrics.h"
#include "xsa/tasks/rolling.h"

namespace xsa::tasks {
namespace {

using Ids = std::vector<text::Token>;

struct Case {
  Json golden;
  Sample sample;
};

/// All golden cases, each loaded from a file of its task's records.
std::vector<Case> load_cases() {
  const xsa::testing::TempFolder folder;
  std::map<std::string, std::vector<Json>> by_task;
  for (Json& golden : testing::golden_lines("task")) {
    by_task[golden.at("task").get<std::string>()].push_back(std::move(golden));
  }
  const auto tokenizer = text::make_tokenizer("gpt2");
  std::vector<Case> cases;
  for (const auto& [name, goldens] : by_task) {
    std::string lines;
    for (const Json& golden : goldens) lines += golden.at("record").dump() + "\n";
    folder.write(name + ".jsonl", lines);
    TaskSamples loaded = load_samples(find_task(name), {.folder = folder.path()}, *tokenizer, {},
                                      [](const auto&) {});
    for (std::size_t i = 0; i < goldens.size(); ++i)
      cases.push_back({goldens[i], std::move(loaded.samples.at(i))});
  }
  return cases;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = load_cases();
  return all;
}

TEST(GoldenCases, AreFifteenOfEightTasks) { EXPECT_EQ(cases().size(), 15u); }

TEST(GoldenCases, GiveTheSameTextsAndTokens) {
  for (const auto& [golden, sample] : cases()) {
    const Json& requests = golden.at("requests");
    ASSERT_EQ(sample.requests.size(), requests.size()) << golden;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Json& expected = requests[i];
      const Request& request = sample.requests[i];
      EXPECT_EQ(request.task, golden.at("task"));
      EXPECT_EQ(request.index, sample.index);
      EXPECT_EQ(request.choice, static_cast<std::int64_t>(i));
      EXPECT_EQ(request.context, expected.at("context").get<std::string>());
      EXPECT_EQ(request.continuation, expected.at("continuation").get<std::string>());
      EXPECT_EQ(request.context_ids, expected.at("ctx_ids").get<Ids>()) << expected;
      EXPECT_EQ(request.continuation_ids, expected.at("cont_ids").get<Ids>()) << expected;
    }
  }
}

TEST(GoldenCases, GiveTheSameFiguresForMadeUpScores) {
  for (const auto& [golden, sample] : cases()) {
    std::vector<Score> scores;
    for (std::size_t i = 0; i < sample.requests.size(); ++i) {
      scores.push_back(testing::made_up_score(sample.requests[i].continuation_ids));
      EXPECT_EQ(scores[i].log_likelihood, golden.at("requests")[i].at("fake_ll").get<double>());
      EXPECT_EQ(scores[i].greedy, golden.at("requests")[i].at("fake_greedy").get<bool>());
    }
    const Task& task = find_task(golden.at("task"));
    const std::vector<double> values = sample_metrics(task, sample, scores);
    ASSERT_EQ(golden.at("metrics").size(), task.metrics.size());
    for (std::size_t m = 0; m < values.size(); ++m)
      EXPECT_EQ(values[m], golden.at("metrics").at(metric_name(task.metrics[m])).get<double>())
          << golden;
  }
}

TEST(GoldenCases, GiveTheSameRollingWindows) {
  const std::vector<Json> goldens = testing::golden_lines("rolling");
  EXPECT_EQ(goldens.size(), 4u);
  for (const Json& golden : goldens) {
    const Json& rolling = golden.at("rolling");
    const std::vector<Window> windows =
        rolling_windows(rolling.at("tokens").get<Ids>(), rolling.at("prefix").get<text::Token>(),
                        rolling.at("max_seq_len").get<std::int64_t>());
    const Json& expected = rolling.at("windows");
    ASSERT_EQ(windows.size(), expected.size()) << golden;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      EXPECT_EQ(windows[i].context, expected[i][0].get<Ids>());
      EXPECT_EQ(windows[i].predicted, expected[i][1].get<Ids>());
    }
  }
}

}  // namespace
}  // namespace xsa::tasks
