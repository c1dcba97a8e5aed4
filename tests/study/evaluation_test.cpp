#include "xsa/study/evaluation.h"

#include <gmock/gmock.h>

#include "tests/support/temp_folder.h"

namespace xsa::study {
namespace {

using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

constexpr const char* kText =
    "one sentence for a model that has learned nothing, and then another.";

class EvaluationTest : public ::testing::Test {
 protected:
  EvaluationTest() {
    config_.model = {.layers = 1, .width = 16, .heads = 2, .head_dim = 8, .context = 8};
    config_.train.eval_texts = folder_.write("text.txt", kText).string();
  }
  std::vector<Json> measured() const {
    model::ModelConfig model = config_.model;
    model.vocab_size = 300;  // padded
    return *evaluation(config_)(model::Gpt(model, 1));
  }

  TempFolder folder_;
  train::RunConfig config_;
};

TEST_F(EvaluationTest, IsNothingWhereNothingIsAskedFor) {
  EXPECT_FALSE(evaluation(train::RunConfig()));
}

TEST_F(EvaluationTest, OfALimitedTextIsThatOfItsBeginning) {
  config_.train.eval_limit = 3;
  const Json limited = measured().at(0).at("metrics");
  folder_.write("text.txt", std::string_view(kText).substr(0, 3 * 8));
  config_.train.eval_limit = 0;
  EXPECT_EQ(measured().at(0).at("metrics"), limited);
  EXPECT_EQ(measured().at(0).at("name"), "text.txt");
  folder_.write("text.txt", kText);
  EXPECT_NE(measured().at(0).at("metrics"), limited);
}

TEST_F(EvaluationTest, IsAConditionByWhatIsAskedAndNotByItsName) {
  Recipe recipe{.run = config_};
  const auto asked = [&] { return Measuring(recipe).conditions(); };
  recipe.run.train.eval_limit = 3;
  const Json first = asked();
  EXPECT_THAT(first.at("evaluated text.txt").get<std::string>(), HasSubstr("3 windows, "));
  EXPECT_EQ(first.at("diagnose.sequences"), recipe.diagnose.sequences);
  folder_.write("elsewhere/text.txt", kText);
  recipe.run.train.eval_texts = (folder_ / "elsewhere/text.txt").string();
  EXPECT_EQ(asked(), first);
  folder_.write("elsewhere/text.txt", "another sentence, of another length and of other letters.");
  EXPECT_NE(asked(), first);
  recipe.run.train.eval_texts = config_.train.eval_texts;
  recipe.run.train.eval_limit = 2;
  EXPECT_NE(asked(), first);
}

TEST_F(EvaluationTest, ReadsWhatItNeedsAtOnce) {
  config_.train.eval_texts += "," + (folder_ / "none.txt").string();
  EXPECT_THAT(error_of([&] { evaluation(config_); }), HasSubstr("none.txt"));
  config_.train.eval_texts = "";
  config_.train.eval_tasks = "piqa";
  EXPECT_THAT(error_of<UsageError>([&] { evaluation(config_); }), HasSubstr("eval_task_data"));
  config_.train.eval_task_data = folder_.path().string();
  EXPECT_THAT(error_of([&] { evaluation(config_); }), HasSubstr("piqa"));
}

}  // namespace
}  // namespace xsa::study
