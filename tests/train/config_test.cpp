#include "xsa/train/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace xsa::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TrainConfig schedule(std::int64_t steps, std::int64_t warmup_steps) {
  TrainConfig config;
  config.lr = 0.5;
  config.min_lr_ratio = 0.1;
  config.steps = steps;
  config.warmup_steps = warmup_steps;
  return config;
}

TEST(LearningRate, ClimbsInALineToThePeakAtTheLastWarmUpStep) {
  const TrainConfig config = schedule(100, 4);
  EXPECT_DOUBLE_EQ(learning_rate(config, 0), 0.125);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(config, 2), 0.375);
  EXPECT_DOUBLE_EQ(learning_rate(config, 3), 0.5);
  EXPECT_LT(learning_rate(config, 4), 0.5);
}

TEST(LearningRate, FallsAlongACosineToItsFloorAtTheLastStep) {
  const TrainConfig config = schedule(104, 4);  // the peak is step 3, the floor step 103
  EXPECT_NEAR(learning_rate(config, 28), 0.05 + 0.45 * 0.5 * (1 + std::sqrt(0.5)), 1e-12);
  EXPECT_NEAR(learning_rate(config, 53), 0.05 + 0.45 * 0.5, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(config, 103), 0.05);
  for (std::int64_t step = 4; step < 104; ++step)
    EXPECT_LT(learning_rate(config, step), learning_rate(config, step - 1)) << step;
}

TEST(LearningRate, BeginsAtThePeakWithoutWarmUp) {
  EXPECT_DOUBLE_EQ(learning_rate(schedule(10, 0), 0), 0.5);
  for (std::int64_t step = 0; step < 10; ++step)
    EXPECT_DOUBLE_EQ(learning_rate(schedule(10, 0), step), learning_rate(schedule(10, 1), step));
}

TEST(LearningRate, EndsAtThePeakWhereAllIsWarmUp) {
  EXPECT_DOUBLE_EQ(learning_rate(schedule(5, 5), 3), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(5, 5), 4), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(1, 0), 0), 0.5);
}

TEST(LearningRate, StaysAtItsFloorAfterTheLastStep) {
  EXPECT_DOUBLE_EQ(learning_rate(schedule(10, 2), 9), 0.05);
  EXPECT_DOUBLE_EQ(learning_rate(schedule(10, 2), 1000), 0.05);
}

TEST(TrainConfig, RefusesAWarmUpLongerThanTheRun) {
  EXPECT_NO_THROW(schedule(10, 10).validate());
  EXPECT_THAT([] { schedule(10, 11).validate(); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("train.warmup_steps"),
                                              HasSubstr("at most train.steps (10), got 11"))));
}

TEST(TrainConfig, RefusesAValueOutsideItsFieldsRange) {
  TrainConfig config;
  config.lr = 0;
  EXPECT_THAT([&] { config.validate(); },
              ThrowsMessage<UsageError>(HasSubstr("train.lr: expected a value above 0")));
}

TEST(TrainConfig, RefusesThreadsThatNoMachineHas) {
  TrainConfig config;
  config.threads = 4097;
  EXPECT_THAT([&] { config.validate(); }, ThrowsMessage<UsageError>(HasSubstr("train.threads")));
}

TEST(RunConfig, ComesBackFromItsJson) {
  RunConfig config;
  config.model.layers = 7;
  config.model.attention = "standard";
  config.data.source = "some/text.txt";
  config.train.lr = 3e-4;
  EXPECT_EQ(to_json(run_config_from_json(to_json(config))), to_json(config));
}

TEST(RunConfig, KeepsDefaultsForWhatJsonLeavesOut) {
  const RunConfig config = run_config_from_json(Json::parse(R"({"train": {"steps": 5}})"));
  EXPECT_EQ(config.train.steps, 5);
  EXPECT_EQ(config.train.batch_size, TrainConfig().batch_size);
  EXPECT_EQ(config.model.layers, model::ModelConfig().layers);
}

TEST(RunConfig, NamesTheNearestTableOrKey) {
  EXPECT_THAT([] { run_config_from_json(Json::parse(R"({"modle": {}})")); },
              ThrowsMessage<UsageError>(
                  AllOf(HasSubstr("unknown table 'modle'"), HasSubstr("did you mean 'model'?"))));
  EXPECT_THAT([] { run_config_from_json(Json::parse(R"({"train": {"warmup_step": 3}})")); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("train: unknown setting 'warmup_step'"),
                                              HasSubstr("did you mean 'warmup_steps'?"))));
  EXPECT_THAT([] { run_config_from_json(Json::parse("[1]")); },
              ThrowsMessage<UsageError>(HasSubstr("expected the tables")));
}

}  // namespace
}  // namespace xsa::train
