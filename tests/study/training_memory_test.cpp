#include "xsa/study/training_memory.h"

#include <gtest/gtest.h>

#include <ostream>

#include "tests/support/temp_folder.h"
#include "xsa/model/gpt.h"
#include "xsa/train/trainer.h"

namespace xsa::study {
namespace {

struct Case {
  const char* name;
  model::ModelConfig model;
  std::int64_t batch_size, accumulation, loss_chunk;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

constexpr const char* kDemoModel = "TheDemo";

class PredictedMemory : public ::testing::TestWithParam<Case> {};

// Each case has another piece at its peak: activations, gradients, the head, the optimizer.
INSTANTIATE_TEST_SUITE_P(
    Models, PredictedMemory,
    ::testing::Values(
        Case{kDemoModel, {}, 12, 1, 1024},
        Case{"AWideOneWithItsOwnHead",
             {.layers = 2, .width = 192, .heads = 6, .tied_head = false},
             4,
             1,
             1024},
        Case{"PassesThatAddUp", {.layers = 3, .width = 96, .heads = 3, .context = 64}, 4, 3, 64},
        Case{"ALargeVocabulary",
             {.layers = 1, .width = 64, .heads = 2, .context = 64, .vocab_size = 30000},
             2,
             1,
             1024},
        Case{"ALargeVocabularyAndAHeadOverPasses",
             {.layers = 1,
              .width = 64,
              .heads = 2,
              .context = 64,
              .vocab_size = 20000,
              .tied_head = false},
             2,
             2,
             32},
        Case{"LearnedPositionsBiasesAndGroupedHeads",
             {.layers = 2,
              .width = 128,
              .heads = 8,
              .kv_heads = 2,
              .head_dim = 16,
              .feed_forward_width = 192,
              .position = "learned",
              .embedding_norm = false,
              .bias = true},
             6,
             1,
             512},
        Case{"SinksAndAStrengthOfEachToken",
             {.layers = 3,
              .width = 96,
              .heads = 6,
              .kv_heads = 3,
              .head_dim = 16,
              .context = 64,
              .learned_strength = "token",
              .sink_tokens = 8,
              .sink_logits = true},
             8,
             2,
             512},
        Case{"GatesOfOutputsAndNorms",
             {.layers = 3,
              .width = 96,
              .heads = 6,
              .head_dim = 16,
              .context = 128,
              .output_gate = true,
              .gated_norm = 16},
             8,
             1,
             512},
        Case{
            "OneShortSequence", {.layers = 6, .width = 128, .heads = 4, .context = 8}, 1, 1, 1024}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST_P(PredictedMemory, IsWithinTwoPercentOfWhatTwoStepsOfTrainingTake) {
  const Case& c = GetParam();
  const xsa::testing::TempFolder folder;
  std::string text;
  while (text.size() < 40000) text += "what is written here does not matter, its length does.\n";
  train::RunConfig config;
  config.model = c.model;
  config.data = {.source = folder.write("text.txt", text), .cache = folder / "cache"};
  config.train.steps = 2;
  config.train.warmup_steps = 1;
  config.train.batch_size = c.batch_size;
  config.train.accumulation = c.accumulation;
  config.train.loss_chunk = c.loss_chunk;
  config.train.eval_rows = 1;
  config.train.threads = 1;  // two spin for long where others run too
  const auto measured = train::train(config, folder / "run").at("peak_tensor_bytes").get<double>();

  const TrainingMemory memory =
      training_memory(train::resolve(config).model,
                      {.rows = c.batch_size, .passes = c.accumulation, .loss_chunk = c.loss_chunk});
  EXPECT_NEAR(static_cast<double>(memory.total()) / measured, 1, 0.02) << "measured " << measured;
}

TEST(TrainingMemory, OfWeightsAndMomentsIsAllParametersThreeTimes) {
  model::ModelConfig config;
  config.vocab_size = 256;
  const TrainingMemory memory = training_memory(config, {.rows = 12});
  EXPECT_EQ(memory.weights, 4 * model::count(config).parameters);
  EXPECT_EQ(memory.optimizer, 2 * memory.weights);
}

TEST(TrainingMemory, GrowsWithTheRowsOfAPassAndNotWithTheirNumber) {
  model::ModelConfig config;
  config.vocab_size = 256;
  const auto total = [&](std::int64_t rows, std::int64_t passes) {
    return training_memory(config, {.rows = rows, .passes = passes}).total();
  };
  EXPECT_GT(total(8, 1), total(4, 1));
  EXPECT_GT(total(8, 2), total(8, 1));  // the first pass's gradients are there in the second
  EXPECT_EQ(total(8, 3), total(8, 2));
}

}  // namespace
}  // namespace xsa::study
