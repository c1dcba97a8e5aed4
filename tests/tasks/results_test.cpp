#include "xsa/tasks/results.h"

#include <gmock/gmock.h>

#include <fstream>
#include <limits>
#include <set>

#include "tests/support/temp_folder.h"
#include "tests/tasks/golden.h"
#include "xsa/tasks/load.h"

namespace xsa::tasks {
namespace {

using ::testing::HasSubstr;
using xsa::testing::error_of;

/// What lm_eval 0.4.13 makes of the golden records and made-up scores (bench/parity/golden.py).
const Json& golden() {
  static const Json json =
      read_json_file(std::string(XSA_TESTS_FOLDER) + "/golden/evaluation_results.json");
  return json;
}

/// All golden records, in the golden results' order of tasks, with a made-up score a request.
struct Asked {
  std::vector<TaskSamples> tasks;
  std::vector<Score> scores;

  Asked() {
    const xsa::testing::TempFolder folder;
    const auto tokenizer = text::make_tokenizer("gpt2");
    for (const auto& item : golden().at("results").items()) {
      std::string lines;
      for (const Json& line : testing::golden_lines("task"))
        if (line.at("task") == item.key()) lines += line.at("record").dump() + "\n";
      folder.write(item.key() + ".jsonl", lines);
      tasks.push_back(load_samples(find_task(item.key()), {.folder = folder.path()}, *tokenizer, {},
                                   [](const auto&) {}));
    }
    for (const TaskSamples& task : tasks)
      for (const Sample& sample : task.samples)
        for (const Request& request : sample.requests)
          scores.push_back(testing::made_up_score(request.continuation_ids));
  }
};

ErrorOptions options() { return {.resamples = golden().at("resamples").get<std::int64_t>()}; }

TEST(Results, AreTheHarnessesFieldByField) {
  const Asked asked;
  const Json summary = summarize(asked.tasks, asked.scores, options());
  for (const auto& item : golden().at("results").items()) {
    const Json& ours = summary.at("results").at(item.key());
    ASSERT_EQ(ours.size(), item.value().size());
    for (const auto& figure : item.value().items()) {
      if (figure.value().is_number_float()) {
        EXPECT_DOUBLE_EQ(ours.at(figure.key()).get<double>(), figure.value().get<double>());
      } else {
        EXPECT_EQ(ours.at(figure.key()), figure.value()) << item.key() << figure.key();
      }
    }
  }
  for (const char* key : {"versions", "n-shot", "higher_is_better", "n-samples", "task_hashes"})
    EXPECT_EQ(summary.at(key), golden().at(key)) << key;
}

TEST(Results, HaveTheHarnessesSampleLog) {
  const Asked asked;
  std::size_t next = 0, checked = 0;
  const auto scores = scores_by_sample(asked.tasks, asked.scores);
  for (const TaskSamples& task : asked.tasks)
    for (const Sample& sample : task.samples) {
      const Json& expected =
          golden().at("samples").at(task.task).at(static_cast<std::size_t>(sample.index));
      EXPECT_EQ(sample_line(find_task(task.task), sample, scores[next++]).dump(), expected.dump());
      ++checked;
    }
  EXPECT_EQ(checked, 15u);
}

TEST(Results, PrintTheHarnessesTable) {
  const Asked asked;
  std::string expected = golden().at("table").get<std::string>();
  const std::string bare = "|±  |      0|", full = "|±  | 0.0000|";
  for (std::size_t place; (place = expected.find(bare)) != std::string::npos;)
    expected.replace(place, bare.size(), full);  // the harness writes a 0 without digits so
  EXPECT_THAT(results_table(summarize(asked.tasks, asked.scores, options())),
              ::testing::StartsWith(expected));
}

TEST(Results, AverageWhatPapersReportAndSayWhich) {
  const Asked asked;
  const Json summary = summarize(asked.tasks, asked.scores, options());
  const Json& average = summary.at("average");
  EXPECT_DOUBLE_EQ(average.at("value").get<double>(), (0 + 0 + 1 + 1 + 0 + 0 + 1 + 0.75) / 8);
  EXPECT_EQ(average.at("of").at("hellaswag"), "acc_norm");
  EXPECT_EQ(average.at("of").at("lambada_openai"), "acc");
  const std::string table = results_table(summary);
  EXPECT_THAT(table, HasSubstr("average of 8 tasks: 0.4688 (acc of "));
  EXPECT_THAT(table, HasSubstr("; acc_norm of hellaswag, openbookqa)"));
}

TEST(Average, TakesOneLambadaAndNothingOfASingleTask) {
  const auto entry = [](const char* task, double value) {
    const Task& found = find_task(task);
    return std::pair<const Task*, std::vector<Figure>>(&found, {{found.customary, value, {}}});
  };
  const Json both = average_of(
      {entry("lambada_openai", 0.5), entry("lambada_standard", 0.1), entry("piqa", 0.7)});
  EXPECT_DOUBLE_EQ(both.at("value").get<double>(), 0.6);
  const Json standard = average_of({entry("lambada_standard", 0.1), entry("piqa", 0.7)});
  EXPECT_DOUBLE_EQ(standard.at("value").get<double>(), 0.4);
  EXPECT_TRUE(average_of({entry("piqa", 0.7)}).is_null());
}

TEST(Results, RefuseScoresThatAreNotFiniteOrTooFew) {
  Asked asked;
  asked.scores[5].log_likelihood = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(error_of([&] { summarize(asked.tasks, asked.scores, {}); }),
              ::testing::AllOf(HasSubstr("record "), HasSubstr("choice "), HasSubstr("nan")));
  asked.scores.pop_back();
  EXPECT_THAT(error_of([&] { summarize(asked.tasks, asked.scores, {}); }),
              HasSubstr("one a request"));
}

TEST(Results, SayWhereTheyComeFromBehindTheFigures) {
  const Json file = with_facts(
      {{"results", 1}, {"task_hashes", 2}},
      {.model_name = "runs/first::a", .config = {{"batch_size", 3}}, .start = 10, .end = 12.5});
  EXPECT_EQ(file.at("config").at("batch_size"), 3);
  EXPECT_EQ(file.at("model_name_sanitized"), "runs__first__a");
  EXPECT_EQ(file.at("total_evaluation_time_seconds"), "2.5");
  EXPECT_EQ(file.begin().key(), "results");
}

TEST(PythonFloat, IsPythonsRepr) {
  EXPECT_EQ(python_float(-5.28125), "-5.28125");
  EXPECT_EQ(python_float(-3), "-3.0");
  EXPECT_EQ(python_float(0.1), "0.1");
  EXPECT_EQ(python_float(1e-5), "1e-05");
  EXPECT_EQ(python_float(0.0001), "0.0001");
  EXPECT_EQ(python_float(1e16), "1e+16");
  EXPECT_EQ(python_float(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(python_float(1e15), "1000000000000000.0");
  EXPECT_EQ(python_float(-0.0), "-0.0");
}

}  // namespace
}  // namespace xsa::tasks
