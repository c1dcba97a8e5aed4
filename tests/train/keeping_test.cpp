// What a run keeps, and where it begins: signals, checkpoints, its text, another's weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "tests/train/tiny_training.h"
#include "xsa/data/dataset.h"
#include "xsa/load/load.h"
#include "xsa/train/validation.h"

namespace xsa::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

TEST_F(Training, OfAClosedTerminalIsSavedAndGoesOn) {
  train(tiny(), *this / "unbroken");
  try {
    train(tiny(), *this / "run", signal_after(5, SIGHUP));
    ADD_FAILURE() << "was not stopped";
  } catch (const Interrupted& stopped) {
    EXPECT_EQ(stopped.exit_code(), 129);
    EXPECT_THAT(stopped.what(), HasSubstr("SIGHUP after step 5 of 10"));
  }
  EXPECT_EQ(checkpoint::Reader(*this / "run").step(), 5);
  clear_stop_signal();
  train(tiny(), *this / "run", {.resume = true});
  expect_same_runs(*this / "run", *this / "unbroken");
}

TEST_F(Training, AskedToSaveSavesAndGoesOn) {
  train(tiny(), *this / "unasked");
  const fs::path run = *this / "asked";
  TrainOptions options = signal_after(5, SIGUSR1);
  const auto raise = options.after_step;
  options.after_step = [&](std::int64_t step) {
    raise(step);
    EXPECT_EQ(fs::exists(run / "checkpoints" / "step-000005"), step > 5) << step;
  };
  RunConfig config = tiny();
  config.train.keep_checkpoints = 0;
  EXPECT_EQ(train(config, run, options)["steps"], 10);
  expect_same_runs(run, *this / "unasked");
}

TEST_F(Training, WithoutLatestGoesOnFromTheNewestWholeCheckpoint) {
  train(tiny(), *this / "unbroken");
  const fs::path run = *this / "run", checkpoints = run / "checkpoints";
  const auto resumed_from = [&] {
    std::int64_t first = 0;
    TrainOptions options{.resume = true};
    options.after_step = [&](std::int64_t step) {
      if (first == 0) first = step;
    };
    train(tiny(), run, options);
    expect_same_runs(run, *this / "unbroken");
    fs::remove(run / "summary.json");
    return first - 1;
  };
  EXPECT_THROW(train(tiny(), run, signal_after(7, SIGTERM)), Interrupted);
  clear_stop_signal();
  fs::remove(checkpoints / "LATEST");
  EXPECT_EQ(resumed_from(), 7);
  // A damaged newest one.
  fs::resize_file(checkpoints / "step-000010" / "optimizer.safetensors", 100);
  EXPECT_EQ(resumed_from(), 8);
  // None that is whole: nothing is begun anew unasked.
  const std::string metrics = read_file(run / "metrics.jsonl");
  for (const auto& entry : fs::directory_iterator(checkpoints))
    if (entry.is_directory()) fs::remove(entry.path() / "state.json");
  fs::remove(checkpoints / "LATEST");
  EXPECT_THAT([&] { train(tiny(), run, {.resume = true}); },
              ThrowsMessage<Error>(HasSubstr("there is no whole checkpoint")));
  EXPECT_EQ(read_file(run / "metrics.jsonl"), metrics);
}

/// Learns a few sentences by heart and is validated on others, read backwards: beyond the letters'
/// frequencies nothing carries over, and the validation loss soon rises.
RunConfig overfitted(const fs::path& root) {
  RunConfig config = tiny(root);
  const std::string text = made_text();
  atomic_write(root / "short.txt",
               text.substr(0, 700) + std::string(text.rbegin(), text.rbegin() + 500));
  config.data.source = (root / "short.txt").string();
  config.data.validation_fraction = 0.4;
  config.train.steps = 60;
  config.train.lr = 3e-2;
  config.train.eval_every = 5;
  config.train.eval_rows = 0;
  config.train.checkpoint_every = 20;
  config.train.keep_checkpoints = 1;
  return config;
}

TEST_F(Training, KeepsTheCheckpointOfTheLowestValidationLoss) {
  const RunConfig config = overfitted(folder_.path());
  const Json summary = train(config, *this / "run");
  double lowest = INFINITY;
  std::int64_t step = 0;
  for (const Json& line : metrics_of(*this / "run")) {
    if (line["type"] != "validation" || line["loss"] >= lowest) continue;
    lowest = line["loss"];
    step = line["step"];
  }
  ASSERT_LT(step, 50) << "it does not overfit";
  ASSERT_NE(step % 20, 0) << "a checkpoint would be due anyway";
  EXPECT_EQ(summary["best_step"], step);
  EXPECT_EQ(summary["best_validation_loss"], lowest);
  const load::Loaded best = load::load((*this / "run").string() + "@best");
  EXPECT_EQ(best.step, step);
  const data::Dataset dataset = data::open_dataset(config.data);
  EXPECT_EQ(validate(best.model, dataset.validation, config.train)->loss, lowest);
  EXPECT_EQ(load::load(*this / "run").step, 60);

  // A run that was stopped behind its best, and one stopped just where the best is due.
  for (const std::int64_t stop : {step + 7, step}) {
    const fs::path run = *this / cat("stopped-", stop).c_str();
    EXPECT_THROW(train(config, run, signal_after(stop, SIGTERM)), Interrupted);
    clear_stop_signal();
    train(config, run, {.resume = true});
    expect_same_runs(run, *this / "run");
    EXPECT_EQ(read_file(run / "checkpoints" / "BEST"),
              read_file(*this / "run" / "checkpoints" / "BEST"));
    EXPECT_EQ(read_file(*checkpoint::best(run / "checkpoints") / "model.safetensors"),
              read_file(*checkpoint::best(*this / "run" / "checkpoints") / "model.safetensors"));
  }
}

TEST_F(Training, KeepsNoBestWhereItIsNotAskedTo) {
  RunConfig config = overfitted(folder_.path());
  config.train.keep_best = false;
  train(config, *this / "run");
  EXPECT_EQ(checkpoint::best(*this / "run" / "checkpoints"), std::nullopt);
  EXPECT_THAT([&] { load::load((*this / "run").string() + "@best"); },
              ThrowsMessage<UsageError>(HasSubstr("those of the steps 60 (latest)")));
}

TEST_F(Training, GoesOnWithItsOwnTextFromAnyFolder) {
  RunConfig config = tiny();
  train(config, *this / "unbroken");
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  config.data.source = "text.txt";
  config.data.cache = "cache";
  EXPECT_THROW(train(config, *this / "run", signal_after(5, SIGTERM)), Interrupted);
  clear_stop_signal();
  fs::create_directory("away");
  atomic_write("away/text.txt", made_text() + "another text of the same name\n");
  fs::current_path("away");
  const Json summary = train(config, *this / "run", {.resume = true});
  fs::current_path(before);
  expect_same_runs(*this / "run", *this / "unbroken");
  EXPECT_EQ(summary["data_location"], (*this / "text.txt").string());
}

TEST_F(Training, BeginsWithAnothersWeights) {
  RunConfig config = tiny();
  config.model.attention = "standard";
  train(config, *this / "base");
  const std::string base = (*this / "base").string();
  const auto origin = checkpoint::Reader(*this / "base");

  config = tiny();
  config.model.vocab_size = 0;
  config.model.learned_strength = "head";
  config.train.from = base + "@10";
  config.train.lr = 1e-30;  // so that what it began with is still there
  config.train.weight_decay = 0;
  const Json summary = train(config, *this / "run");
  EXPECT_EQ(summary["origin"]["path"], origin.folder().string());
  EXPECT_EQ(summary["origin"]["step"], 10);
  EXPECT_EQ(summary["origin"]["weights_sha256"], origin.model_sha256());
  EXPECT_EQ(summary["attention"], "exclusive");
  const checkpoint::Reader reader(*this / "run");
  for (const checkpoint::TensorData& tensor : origin.model().tensors())
    EXPECT_TRUE(std::ranges::equal(reader.model().at(tensor.name).bytes, tensor.bytes))
        << tensor.name;
  EXPECT_EQ(load::load(*this / "run").model.config().learned_strength, "head");
  EXPECT_EQ(read_json_file(*this / "run" / "recipe.json")["train"]["from"], base + "@10");
}

TEST_F(Training, WithAnothersWeightsGoesOnWithoutThem) {
  train(tiny(), *this / "base");
  RunConfig config = tiny();
  config.train.from = (*this / "base").string();
  train(config, *this / "unbroken");
  for (const std::int64_t step : {1, 7}) {
    const fs::path run = *this / cat("stopped-", step).c_str();
    EXPECT_THROW(train(config, run, signal_after(step, SIGTERM)), Interrupted);
    clear_stop_signal();
    fs::rename(*this / "base", *this / "gone");
    const Json summary = train(config, run, {.resume = true});
    fs::rename(*this / "gone", *this / "base");
    expect_same_runs(run, *this / "unbroken");
    EXPECT_EQ(summary["origin"]["step"], 10);
  }
  // Killed before its first own checkpoint was due.
  const fs::path killed = *this / "killed";
  EXPECT_THROW(train(config, killed, signal_after(1, SIGTERM)), Interrupted);
  clear_stop_signal();
  EXPECT_TRUE(fs::exists(killed / "checkpoints" / "step-000000"));
}

TEST_F(Training, RefusesSettingsThatAnothersWeightsDoNotFit) {
  train(tiny(), *this / "base");
  RunConfig config = tiny();
  config.train.from = (*this / "base").string();
  config.model.width = 48;
  config.model.window = 8;
  EXPECT_THAT([&] { train(config, *this / "run"); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("model.width (32 there, 48 asked for)"),
                                              Not(HasSubstr("model.window")))));
  EXPECT_FALSE(fs::exists(*this / "run"));
  config.model.width = 32;
  EXPECT_EQ(train(config, *this / "run")["steps"], 10);
}

}  // namespace
}  // namespace xsa::train
