#include "xsa/report/comparison.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "tests/support/made_comparison.h"
#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"

namespace xsa::report {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TempFolder;

class LoadComparison : public ::testing::Test {
 protected:
  LoadComparison() { testing::write_comparison(folder_.path(), {}); }

  std::string error() const {
    return error_of([&] { load_comparison(folder_.path()); });
  }
  fs::path metrics() const { return folder_ / "standard-seed1337/metrics.jsonl"; }

  TempFolder folder_;
};

TEST_F(LoadComparison, ReadsRunsCurvesAndDiagnosis) {
  const Comparison comparison = load_comparison(folder_.path());
  ASSERT_EQ(comparison.runs.size(), 2u);
  const auto& run = comparison.runs[1];
  EXPECT_EQ(run.record.attention, "exclusive");
  EXPECT_EQ(run.record.seed, 1337);
  EXPECT_EQ(run.train.step.size(), 30u);
  ASSERT_EQ(run.validation.step.size(), 6u);
  EXPECT_EQ(run.validation.step[1], 100);
  EXPECT_EQ(run.validation.tokens[1], 307200);
  EXPECT_DOUBLE_EQ(run.validation.elapsed_s[1], run.train.elapsed_s[9]);
  EXPECT_EQ(run.record.diagnose["layers"].size(), 4u);
  EXPECT_EQ(run.recipe["model"]["attention"], "exclusive");
}

TEST(LoadEvaluations, ReadsACurveForEachFigureOfEachTaskAndText) {
  const TempFolder folder;
  testing::write_comparison(folder.path(), {.evaluated = true});
  const auto run = load_comparison(folder.path()).runs[1];
  ASSERT_EQ(run.evaluations.size(), 5u);
  const Curve& curve = run.evaluations.at({"piqa", "acc_norm"});
  ASSERT_EQ(curve.step.size(), 6u);
  EXPECT_EQ(curve.step, run.validation.step);
  EXPECT_EQ(curve.tokens, run.validation.tokens);
  EXPECT_EQ(curve.elapsed_s, run.validation.elapsed_s);
  EXPECT_DOUBLE_EQ(curve.loss[2], 0.92 - 0.12 * run.validation.loss[2]);
}

TEST_F(LoadComparison, NamesWhatIsWrongWithAnEvaluation) {
  const auto with = [&](const char* line) {
    folder_.write("standard-seed1337/metrics.jsonl", line);
    return error();
  };
  EXPECT_THAT(with("{\"type\": \"eval\", \"step\": 1, \"tokens\": 9}\n"),
              HasSubstr(":1: expected \"name\""));
  EXPECT_THAT(with("{\"type\": \"eval\", \"step\": 1, \"tokens\": 9, \"name\": \"a\"}\n"),
              HasSubstr("expected \"metrics\""));
  const std::string good =
      "{\"type\": \"eval\", \"step\": 1, \"tokens\": 9, \"name\": \"a\", "
      "\"metrics\": {\"acc\": null}}\n";
  EXPECT_EQ(with(good.c_str()), "");
  EXPECT_THAT(with((good + good).c_str()), HasSubstr(":2: expected steps to increase"));
  EXPECT_THAT(with("{\"type\": \"eval\", \"step\": 1, \"tokens\": 9, \"name\": \"a\", "
                   "\"metrics\": {\"acc\": \"x\"}}\n"),
              HasSubstr("a number or null, got string"));
}

TEST_F(LoadComparison, NamesEveryMissingFile) {
  for (const char* const name : {"standard-seed1337/recipe.json", "exclusive-seed1337/summary.json",
                                 "exclusive-seed1337/metrics.jsonl", "compare.json"}) {
    fs::remove(folder_ / name);
    EXPECT_THAT(error(), StartsWith((folder_ / name).string() + ": cannot open"));
    testing::write_comparison(folder_.path(), {});
  }
}

TEST_F(LoadComparison, NamesEveryBrokenFile) {
  for (const char* const name : {"standard-seed1337/recipe.json", "exclusive-seed1337/summary.json",
                                 "exclusive-seed1337/diagnose.json", "compare.json"}) {
    folder_.write(name, "{\"half\": ");
    EXPECT_THAT(error(), StartsWith((folder_ / name).string() + ": expected JSON"));
    folder_.write(name, "[]");
    EXPECT_THAT(error(), StartsWith((folder_ / name).string() + ": expected a JSON object"));
    testing::write_comparison(folder_.path(), {});
  }
}

TEST_F(LoadComparison, SaysWhatCompareJsonLacks) {
  folder_.write("compare.json", R"({"name": "demo"})");
  EXPECT_THAT(error(), EndsWith("compare.json: expected \"runs\" (a list), which is missing"));
  folder_.write("compare.json", R"({"name": "demo", "runs": []})");
  EXPECT_THAT(error(), HasSubstr("expected at least one run"));
  folder_.write("compare.json", R"({"name": "demo", "runs": [{"attention": 3}]})");
  EXPECT_THAT(error(), HasSubstr("expected \"attention\" to be text, got number"));
}

TEST_F(LoadComparison, RefusesRunsThatDifferInMoreThanAttentionAndSeed) {
  const fs::path summary = folder_ / "exclusive-seed1337/summary.json";
  const Json whole = read_json_file(summary);
  Json other = whole;
  other["validation_rows"] = 2;
  write_json_file(summary, other);
  EXPECT_THAT(error(),
              AllOf(HasSubstr("exclusive-seed1337 cannot be compared with standard-seed1337"),
                    HasSubstr("train.eval_rows (64 there, 2 here)"), HasSubstr("--overwrite")));
  write_json_file(summary, whole);
  EXPECT_EQ(error(), "");
  const fs::path recipe = folder_ / "exclusive-seed1337/recipe.json";
  other = read_json_file(recipe);
  other["train"]["steps"] = 60;
  write_json_file(recipe, other);
  EXPECT_THAT(error(), HasSubstr("train.steps (300 there, 60 here)"));
}

TEST_F(LoadComparison, DoesWithoutDiagnosis) {
  fs::remove(folder_ / "standard-seed1337/diagnose.json");
  EXPECT_TRUE(load_comparison(folder_.path()).runs[0].record.diagnose.is_null());
}

TEST_F(LoadComparison, ForgivesALastLineCutShort) {
  const std::string whole = read_file(metrics());
  folder_.write("standard-seed1337/metrics.jsonl", whole + R"({"type": "train", "st)");
  EXPECT_EQ(load_comparison(folder_.path()).runs[0].train.step.size(), 30u);
}

TEST_F(LoadComparison, NamesTheLineOfBrokenMetrics) {
  const auto with_second_line = [&](const char* line) {
    folder_.write("standard-seed1337/metrics.jsonl",
                  std::string(R"({"type": "train", "step": 5, "tokens": 9, "loss": 3.0})") + "\n" +
                      line + "\n");
    return error();
  };
  EXPECT_THAT(with_second_line(R"({"type": "train", "st)"),
              AllOf(StartsWith(metrics().string() + ":2: expected a JSON object on each line"),
                    HasSubstr("got '{\"type\": \"train\", \"st'")));
  EXPECT_THAT(with_second_line("7"), HasSubstr(":2: expected a JSON object, got number"));
  EXPECT_THAT(with_second_line(R"({"type": "train", "step": 6, "tokens": 9})"),
              HasSubstr(":2: expected \"loss\""));
  EXPECT_THAT(with_second_line(R"({"type": "train", "step": 5, "tokens": 9, "loss": 3.0})"),
              HasSubstr(":2: expected steps to increase, got 5 after 5"));
}

TEST_F(LoadComparison, TakesALossOfNullForNotFinite) {
  folder_.write("standard-seed1337/metrics.jsonl",
                "{\"type\": \"validation\", \"step\": 5, \"tokens\": 9, \"loss\": null}\n");
  EXPECT_TRUE(std::isnan(load_comparison(folder_.path()).runs[0].validation.loss.at(0)));
}

}  // namespace
}  // namespace xsa::report
