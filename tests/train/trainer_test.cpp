#include "tests/train/tiny_training.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>

#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"
#include "xsa/base/rng.h"
#include "xsa/base/signals.h"
#include "xsa/checkpoint/checkpoint.h"
#include "xsa/data/shard.h"
#include "xsa/load/load.h"
#include "xsa/train/run_folder.h"
#include "xsa/train/tensorboard.h"
#include "xsa/train/validation.h"

namespace xsa::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Nats a byte of a model that knows how often each byte comes, and nothing else.
double unigram_entropy(const std::string& text) {
  std::map<char, double> counts;
  for (const char byte : text) ++counts[byte];
  double entropy = 0;
  for (const auto& [byte, count] : counts) {
    const double share = count / static_cast<double>(text.size());
    entropy -= share * std::log(share);
  }
  return entropy;
}

std::vector<std::string> keys(const Json& json) {
  std::vector<std::string> names;
  for (const auto& [key, value] : json.items()) names.push_back(key);
  return names;
}

TEST_F(Training, LearnsMoreThanHowOftenLettersCome) {
  RunConfig config = tiny();
  config.train.steps = 120;
  config.train.eval_every = 120;
  config.train.checkpoint_every = 120;
  const Json summary = train(config, *this / "run");
  EXPECT_LT(summary["validation_loss"], unigram_entropy(made_text()) - 1);
  EXPECT_LT(summary["train_loss"], unigram_entropy(made_text()) - 1);
}

TEST_F(Training, RepeatsItselfToTheBit) {
  RunConfig config = tiny();
  config.train.threads = 2;
  config.train.steps = 4;
  train(config, *this / "one");
  train(config, *this / "two");
  expect_same_runs(*this / "two", *this / "one");
}

TEST_F(Training, OfAnotherSeedDiffers) {
  RunConfig config = tiny();
  train(config, *this / "one");
  config.train.seed = 2;
  train(config, *this / "two");
  EXPECT_NE(metrics_without_times(*this / "one"), metrics_without_times(*this / "two"));
}

TEST_F(Training, GoesOnAfterASignalAsIfNothingHadHappened) {
  train(tiny(), *this / "unbroken");
  // Between everything; where a validation is due and is made up for; at the end.
  for (const std::int64_t step : {1, 5, 8, 10}) {
    const fs::path run = *this / cat("stopped-", step).c_str();
    install_stop_handlers();
    try {
      train(tiny(), run, signal_after(step, SIGTERM));
      ADD_FAILURE() << "was not stopped after step " << step;
    } catch (const Interrupted& stopped) {
      EXPECT_EQ(stopped.exit_code(), 143);
      EXPECT_THAT(stopped.what(), AllOf(HasSubstr(cat("SIGTERM after step ", step, " of 10")),
                                        HasSubstr("--resume")));
    }
    EXPECT_EQ(checkpoint::Reader(run).step(), step);
    EXPECT_FALSE(fs::exists(run / "summary.json"));
    clear_stop_signal();
    train(tiny(), run, {.resume = true});
    expect_same_runs(run, *this / "unbroken");
  }
}

/// Documents of one sentence: an end-of-text token opens each.
RunConfig packed(const fs::path& root) {
  if (!fs::exists(root / "sentences")) {
    const auto tokenizer = text::make_tokenizer("byte");
    std::vector<text::Token> train, validation;
    std::istringstream text(made_text());
    std::int64_t sentences = 0;
    for (std::string sentence; std::getline(text, sentence);) {
      auto& side = ++sentences % 10 == 0 ? validation : train;
      side.push_back(tokenizer->end_of_text());
      tokenizer->encode(sentence, side);
    }
    fs::create_directory(root / "sentences");
    data::write_shard(root / "sentences" / "made_train_0.bin", train);
    data::write_shard(root / "sentences" / "made_val_0.bin", validation);
  }
  RunConfig config = tiny(root);
  config.data.source = (root / "sentences").string();
  config.data.documents = "packed";
  return config;
}

TEST_F(Training, OfPackedDocumentsGoesOnAsIfNothingHadHappened) {
  const RunConfig config = packed(folder_.path());
  train(config, *this / "unbroken");
  for (const std::int64_t step : {3, 8}) {
    const fs::path run = *this / cat("stopped-", step).c_str();
    install_stop_handlers();
    EXPECT_THROW(train(config, run, signal_after(step, SIGTERM)), Interrupted);
    clear_stop_signal();
    train(config, run, {.resume = true});
    expect_same_runs(run, *this / "unbroken");
  }
}

TEST_F(Training, OfPackedDocumentsIsAnotherThanOfAStream) {
  RunConfig config = packed(folder_.path());
  const Json within = train(config, *this / "packed");
  config.data.documents = "stream";
  const Json across = train(config, *this / "stream");
  EXPECT_EQ(within["data_sha256"], across["data_sha256"]);
  EXPECT_NE(within["validation_loss"], across["validation_loss"]);
  EXPECT_THAT([&] { train(config, *this / "packed", {.resume = true}); },
              ThrowsMessage<UsageError>(HasSubstr("data.documents (\"packed\" there")));
}

// Every document by itself, with a model that has learned something.
TEST_F(Training, ValidatesPackedDocumentsAsEachAlone) {
  RunConfig config = packed(folder_.path());
  config.train.steps = 30;
  config.train.eval_rows = 0;
  const Json summary = train(config, *this / "run");
  const model::Gpt model = load::load(*this / "run").model;
  const data::Dataset dataset = data::open_dataset(config.data);
  const at::NoGradGuard no_grad;
  const std::int64_t end = dataset.tokenizer->end_of_text(), context = config.model.context;
  double loss = 0;
  const std::int64_t rows = (dataset.validation.tokens.size() - 1) / context;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(context + 1));
    dataset.validation.tokens.read(row * context, tokens);
    for (std::int64_t begin = 0, next = 1; begin < context; begin = next++) {
      while (next < context && tokens[static_cast<std::size_t>(next)] != end) ++next;
      const at::Tensor part = at::tensor(tokens, at::kLong).narrow(0, begin, next - begin + 1);
      loss += model
                  .loss_sum(part.narrow(0, 0, next - begin).unsqueeze(0),
                            part.narrow(0, 1, next - begin).unsqueeze(0))
                  .item<double>();
    }
  }
  EXPECT_EQ(summary["validation_rows"], rows);
  EXPECT_NEAR(summary["validation_loss"], loss / static_cast<double>(rows * context), 1e-5);
}

TEST_F(Training, HasTheSameBitsWhateverItReadsAhead) {
  RunConfig config = tiny();
  train(config, *this / "four");
  for (const std::int64_t batches : {0, 1, 50}) {
    config.data.read_ahead = batches;
    const fs::path run = *this / cat("ahead-", batches).c_str();
    train(config, run);
    expect_same_runs(run, *this / "four");
  }
}

TEST_F(Training, EndsWhereADataFileIsBroken) {
  const RunConfig config = packed(folder_.path());
  const fs::path shard = *this / "sentences" / "made_train_0.bin";
  TrainOptions options;
  options.after_step = [&](std::int64_t step) {
    if (step == 1) fs::resize_file(shard, 1024 + 2000);
  };
  EXPECT_THAT([&] { train(config, *this / "run", options); },
              ThrowsMessage<Error>(AllOf(HasSubstr("made_train_0.bin"), HasSubstr("cut short"))));
}

TEST_F(Training, StoppedByCtrlCSaysSo) {
  try {
    train(tiny(), *this / "run", signal_after(3, SIGINT));
    ADD_FAILURE() << "was not stopped";
  } catch (const Interrupted& stopped) {
    EXPECT_EQ(stopped.exit_code(), 130);
  }
}

TEST_F(Training, GoesOnTwiceFromOneStep) {
  train(tiny(), *this / "unbroken");
  for (int time = 0; time < 2; ++time) {
    install_stop_handlers();
    std::raise(SIGTERM);  // before the first step of this process
    EXPECT_THROW(train(tiny(), *this / "run", {.resume = true}), Interrupted);
    clear_stop_signal();
  }
  train(tiny(), *this / "run", {.resume = true});
  expect_same_runs(*this / "run", *this / "unbroken");
}

// The killed process begins this test anew and finds the folder in the environment.
TEST(KilledTraining, GoesOnAsIfNothingHadHappened) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr const char* kFolder = "XSA_TEST_KILLED_TRAINING";
  std::optional<testing::TempFolder> folder;
  if (std::getenv(kFolder) == nullptr) {
    folder.emplace();
    ::setenv(kFolder, folder->path().c_str(), 1);
  }
  const fs::path root = std::getenv(kFolder);
  RunConfig config = tiny(root);
  config.train.checkpoint_every = 5;  // a metrics line lies between it and the kill
  EXPECT_EXIT(train(config, root / "killed", signal_after(7, SIGKILL)),
              ::testing::KilledBySignal(SIGKILL), "");
  ::unsetenv(kFolder);

  ASSERT_EQ(checkpoint::Reader(root / "killed").step(), 5);
  EXPECT_FALSE(fs::exists(root / "killed" / "summary.json"));
  train(config, root / "killed", {.resume = true});
  train(config, root / "unbroken");
  expect_same_runs(root / "killed", root / "unbroken");
}

TEST_F(Training, KilledBeforeItsFirstCheckpointBeginsAnew) {
  train(tiny(), *this / "unbroken");
  fs::create_directory(*this / "killed");
  fs::copy_file(*this / "unbroken" / "recipe.json", *this / "killed" / "recipe.json");
  atomic_write(*this / "killed" / "metrics.jsonl", "{\"type\": \"train\", \"step\": 1}\n");
  train(tiny(), *this / "killed", {.resume = true});
  expect_same_runs(*this / "killed", *this / "unbroken");
}

TEST_F(Training, StopsBeforeAnUpdateThatIsNotFinite) {
  RunConfig config = tiny();
  config.train.lr = 1e30;
  config.train.checkpoint_every = 1;
  config.train.log_every = 1;
  EXPECT_THAT([&] { train(config, *this / "run"); },
              ThrowsMessage<Error>(AllOf(
                  HasSubstr("step 2 of 10: the loss is "), HasSubstr("expected a finite number"),
                  HasSubstr((*this / "run" / "checkpoints" / "step-000001").string()),
                  HasSubstr("--train.lr (1e+30)"), HasSubstr("--train.warmup_steps"))));
  EXPECT_EQ(checkpoint::Reader(*this / "run").step(), 1) << "whole, and the last";
  ASSERT_EQ(metrics_of(*this / "run").size(), 1u);
  EXPECT_EQ(metrics_of(*this / "run")[0]["step"], 1);
}

TEST_F(Training, NeverSavesWeightsThatAreNotFinite) {
  RunConfig config = tiny();
  config.train.lr = 1e300;  // beyond fp32: the first update itself breaks the weights
  config.train.checkpoint_every = 1;
  EXPECT_THAT([&] { train(config, *this / "run"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("step 1 of 10: the norm of the weights"),
                                         HasSubstr("last good checkpoint: none yet"))));
  EXPECT_FALSE(checkpoint::latest(*this / "run" / "checkpoints").has_value());
}

TEST_F(Training, AccumulatesToTheSameStep) {
  RunConfig config = tiny();
  config.train.batch_size = 12;
  config.train.log_every = 1;
  config.train.steps = 4;
  train(config, *this / "1x12");
  config.train.batch_size = 6;
  config.train.accumulation = 2;
  train(config, *this / "2x6");
  const std::vector<Json> whole = metrics_of(*this / "1x12"), parts = metrics_of(*this / "2x6");
  ASSERT_EQ(parts.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(parts[i]["tokens"], whole[i]["tokens"]);
    EXPECT_NEAR(parts[i]["loss"], whole[i]["loss"], 1e-4);
    if (whole[i]["type"] == "train") {
      EXPECT_NEAR(parts[i]["grad_norm"], whole[i]["grad_norm"], 1e-3);
    }
  }
}

TEST_F(Training, ClipsItsGradients) {
  RunConfig config = tiny();
  config.train.log_every = 1;
  config.train.weight_decay = 0;
  config.train.grad_clip = 1e-14;  // far below AdamW's epsilon: nothing is left to learn from
  const Json clipped = train(config, *this / "clipped");
  config.train.grad_clip = 0;
  const Json free = train(config, *this / "free");
  const double first = metrics_of(*this / "free")[0]["loss"];
  EXPECT_NEAR(clipped["validation_loss"], first, 0.02);
  EXPECT_LT(free["validation_loss"], first - 0.5);
}

TEST_F(Training, WritesMetricsAsDocumented) {
  const Json summary = train(tiny(), *this / "run");
  std::vector<std::string> types_and_steps;
  double elapsed = 0;
  for (const Json& line : metrics_of(*this / "run")) {
    const std::string type = line["type"];
    types_and_steps.push_back(cat(type, " ", line["step"]));
    EXPECT_EQ(line["tokens"], line["step"].get<std::int64_t>() * 8 * 32);
    if (type == "train") {
      EXPECT_THAT(keys(line), ElementsAre("type", "step", "tokens", "loss", "lr", "grad_norm",
                                          "tokens_per_s", "data_wait_s", "elapsed_s"));
      EXPECT_GE(line["data_wait_s"], 0);
      EXPECT_EQ(line["lr"], learning_rate(tiny().train, line["step"].get<std::int64_t>() - 1));
      EXPECT_GT(line["grad_norm"], 0);
      EXPECT_GT(line["tokens_per_s"], 0);
      EXPECT_GT(line["elapsed_s"], elapsed);
      elapsed = line["elapsed_s"];
    } else {
      EXPECT_THAT(keys(line), ElementsAre("type", "step", "tokens", "loss", "bits_per_byte"));
      EXPECT_NEAR(line["bits_per_byte"], line["loss"].get<double>() / std::log(2.0), 0.05)
          << "a byte tokenizer has about one token a byte";
    }
  }
  EXPECT_THAT(types_and_steps, ElementsAre("train 3", "validation 4", "train 6", "validation 8",
                                           "train 9", "train 10", "validation 10"));
}

TEST_F(Training, SumsUpARunAsDocumented) {
  TrainOptions options;
  options.at_end = [](const model::Gpt& model, const data::Dataset& dataset) {
    EXPECT_GT(dataset.validation.tokens.size(), 0);
    return Json{{"layers", model.config().layers}};
  };
  const Json summary = train(tiny(), *this / "run", options);
  EXPECT_THAT(keys(summary),
              ElementsAre("attention", "seed", "steps", "tokens", "data_sha256", "data_location",
                          "parameters", "non_embedding_parameters", "forward_flops_per_token",
                          "train_loss", "validation_loss", "bits_per_byte", "validation_rows",
                          "best_validation_loss", "best_step", "tokens_per_s", "data_wait_s",
                          "elapsed_s", "peak_tensor_bytes", "peak_rss_bytes", "threads", "machine",
                          "date", "commit", "conditions", "layers"));
  EXPECT_EQ(summary["steps"], 10);
  EXPECT_EQ(summary["tokens"], 10 * 8 * 32);
  EXPECT_EQ(summary["threads"], 1);
  EXPECT_EQ(summary["validation_rows"], 10);
  EXPECT_EQ(summary["layers"], 2);
  EXPECT_GT(summary["peak_tensor_bytes"], 4 * 4 * summary["parameters"].get<std::int64_t>())
      << "weights, gradients and two moments";
  EXPECT_EQ(read_json_file(*this / "run" / "summary.json"), summary);
  EXPECT_EQ(metrics_of(*this / "run").back()["loss"], summary["validation_loss"]);
  RunConfig resolved = tiny();
  resolved.model.vocab_size = text::make_tokenizer("byte")->vocabulary_size();
  EXPECT_EQ(read_json_file(*this / "run" / "recipe.json"), to_json(resolved));
}

TEST_F(Training, ThatIsFinishedIsNotTakenUpAgain) {
  const Json summary = train(tiny(), *this / "run");
  TrainOptions options{.resume = true};
  options.after_step = [](std::int64_t) { ADD_FAILURE() << "trained again"; };
  EXPECT_EQ(train(tiny(), *this / "run", options), summary);
}

TEST_F(Training, LeavesWeightsThatLoadFinds) {
  const Json summary = train(tiny(), *this / "run");
  const model::Gpt model = load::load(*this / "run").model;
  const data::Dataset dataset = data::open_dataset(tiny().data);
  EXPECT_EQ(validate(model, dataset.validation, tiny().train)->loss, summary["validation_loss"]);
}

TEST_F(Training, KeepsTheNewestCheckpointsOnly) {
  train(tiny(), *this / "run");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(*this / "run" / "checkpoints"))
    names.push_back(entry.path().filename().string());
  EXPECT_THAT(names,
              ::testing::UnorderedElementsAre("step-000008", "step-000010", "BEST", "LATEST"));
}

TEST_F(Training, IsNotResumedWithAnotherRecipe) {
  EXPECT_THROW(train(tiny(), *this / "run", signal_after(5, SIGTERM)), Interrupted);
  clear_stop_signal();
  RunConfig config = tiny();
  config.train.lr = 3e-3;
  config.train.log_every = 1;
  const std::string metrics = read_file(*this / "run" / "metrics.jsonl");
  EXPECT_THAT([&] { train(config, *this / "run", {.resume = true}); },
              ThrowsMessage<UsageError>(HasSubstr("train.lr (0.01 there, 0.003 asked for)")));
  EXPECT_EQ(read_file(*this / "run" / "metrics.jsonl"), metrics);
  EXPECT_EQ(checkpoint::Reader(*this / "run").step(), 5);
  config.train.lr = tiny().train.lr;
  EXPECT_EQ(train(config, *this / "run", {.resume = true})["steps"], 10) << "log_every may differ";
}

TEST_F(Training, IsNeverMeasuredInTwoWays) {
  RunConfig config = tiny();
  EXPECT_THROW(train(config, *this / "run", signal_after(5, SIGTERM)), Interrupted);
  clear_stop_signal();
  config.train.eval_rows = 2;
  const auto is_refused = ThrowsMessage<UsageError>(
      AllOf(HasSubstr("train.eval_rows (10 there, 2 asked for)"), HasSubstr("--overwrite")));
  EXPECT_THAT([&] { train(config, *this / "run", {.resume = true}); }, is_refused);
  const Json summary = train(tiny(), *this / "run", {.resume = true});
  EXPECT_THAT([&] { train(config, *this / "run", {.resume = true}); }, is_refused);
  EXPECT_EQ(summary["conditions"]["train.eval_rows"], 10);
  EXPECT_EQ(summary["conditions"]["data_sha256"], summary["data_sha256"]);
  config.train.eval_rows = 1'000'000;  // as many as there are
  const Json all = train(config, *this / "all");
  config.train.eval_rows = 0;
  EXPECT_EQ(train(config, *this / "all", {.resume = true}), all);
}

TEST_F(Training, MayBeAskedToMeasureMoreUntilItHasEnded) {
  TrainOptions options = signal_after(5, SIGTERM);
  options.measured = {{"text.txt", "1"}};
  EXPECT_THROW(train(tiny(), *this / "run", options), Interrupted);
  clear_stop_signal();
  options = {.resume = true, .measured = {{"text.txt", "2"}}};
  EXPECT_THROW(train(tiny(), *this / "run", options), UsageError);
  options.measured = {{"piqa", "3"}};
  const Json conditions = train(tiny(), *this / "run", options)["conditions"];
  EXPECT_EQ(conditions["piqa"], "3");
  EXPECT_FALSE(conditions.contains("text.txt"));
  options.measured = {{"piqa", "4"}};
  EXPECT_THROW(train(tiny(), *this / "run", options), UsageError);
}

TEST_F(Training, OfAnotherTextIsNoFinishedRun) {
  train(tiny(), *this / "run");
  atomic_write(*this / "text.txt", made_text() + made_text());
  EXPECT_THAT([&] { train(tiny(), *this / "run", {.resume = true}); },
              ThrowsMessage<Error>(HasSubstr("another text")));
}

TEST_F(Training, StoppedNamesTheCommandThatContinuesIt) {
  const auto told = [&](TrainOptions options) {
    options.after_step = [](std::int64_t step) {
      if (step == 1) std::raise(SIGINT);
    };
    try {
      train(tiny(), *this / "run", options);
    } catch (const Interrupted& stopped) {
      install_stop_handlers();
      clear_stop_signal();
      return std::string(stopped.what());
    }
    return std::string("was not stopped");
  };
  EXPECT_THAT(told({}), HasSubstr("The same command with --resume continues it"));
  EXPECT_THAT(told({.overwrite = true}),
              HasSubstr("--resume in place of --overwrite continues it"));
  EXPECT_THAT(told({.overwrite = true, .how_to_continue = "Do it again"}),
              HasSubstr("Do it again"));
}

TEST_F(Training, ReplacesARunOnlyWhenAskedTo) {
  const Json first = train(tiny(), *this / "run");
  RunConfig config = tiny();
  config.train.steps = 3;
  EXPECT_THROW(train(config, *this / "run"), UsageError);
  EXPECT_EQ(read_json_file(*this / "run" / "summary.json"), first);
  EXPECT_EQ(train(config, *this / "run", {.overwrite = true})["steps"], 3);
  EXPECT_EQ(metrics_of(*this / "run").back()["step"], 3);
  EXPECT_EQ(checkpoint::Reader(*this / "run").step(), 3);
}

TEST_F(Training, NeverReplacesAFolderThatIsNoRuns) {
  atomic_write(*this / "mine" / "notes.txt", "mine");
  EXPECT_THROW(train(tiny(), *this / "mine", {.overwrite = true}), UsageError);
  EXPECT_EQ(read_file(*this / "mine" / "notes.txt"), "mine");
}

TEST_F(Training, RefusesAFolderWhereAnotherProcessTrains) {
  fs::create_directory(*this / "run");
  const FolderLock other(*this / "run", "xsa train");
  EXPECT_THAT([&] { train(tiny(), *this / "run"); },
              ThrowsMessage<Error>(HasSubstr("another process is training here")));
  EXPECT_FALSE(fs::exists(*this / "run" / "recipe.json"));
}

TEST_F(Training, RefusesAnImpossibleRecipeBeforeAnythingIsMade) {
  const std::vector<std::function<void(RunConfig&)>> changes = {
      [](RunConfig& config) { config.train.steps = 0; },
      [](RunConfig& config) { config.train.warmup_steps = 11; },
      [](RunConfig& config) { config.model.vocab_size = 17; },
      [](RunConfig& config) { config.model.kv_heads = 3; },
      [](RunConfig& config) { config.model.context = 10'000; },  // longer than what is held out
      [](RunConfig& config) { config.train.batch_size = 100'000; },
      [](RunConfig& config) { config.data.tokenizer = "bite"; },
      [](RunConfig& config) { config.data.documents = "packet"; },
      [](RunConfig& config) { config.train.eval_tasks = "piqa"; },  // without its data
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    RunConfig config = tiny();
    changes[i](config);
    EXPECT_THROW(train(config, *this / "run"), UsageError) << i;
    EXPECT_FALSE(fs::exists(*this / "run")) << i;
  }
}

}  // namespace
}  // namespace xsa::train
