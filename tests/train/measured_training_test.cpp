// What is measured while a model trains: evaluations and diagnoses, none missing, none there twice.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>

#include "tests/train/tiny_training.h"

namespace xsa::train {
namespace {

using ::testing::ElementsAre;

/// A measurement that counts its calls and depends on the model.
TrainOptions evaluated(std::int64_t& calls) {
  TrainOptions options;
  options.evaluate = [&calls](const model::Gpt& model) {
    ++calls;
    const double weight = model.parameters().front().tensor.sum().item<double>();
    return std::vector<Json>{{{"name", "first"}, {"metrics", {{"weight", weight}}}},
                             {{"name", "second"}, {"metrics", {{"acc", 0.5}}}}};
  };
  return options;
}

TEST_F(Training, WritesWhatIsEvaluatedBesideItsValidations) {
  std::int64_t calls = 0;
  const Json summary = train(tiny(), *this / "run", evaluated(calls));
  EXPECT_EQ(calls, 3);
  std::vector<std::string> found;
  Json last = Json::array();
  for (Json line : metrics_of(*this / "run")) {
    if (line["type"] != "eval") continue;
    EXPECT_EQ(line["tokens"], line["step"].get<std::int64_t>() * 8 * 32);
    found.push_back(cat(line["name"].get<std::string>(), " ", line["step"]));
    for (const char* key : {"type", "step", "tokens"}) line.erase(key);
    last.push_back(line);
  }
  EXPECT_THAT(found,
              ElementsAre("first 4", "second 4", "first 8", "second 8", "first 10", "second 10"));
  EXPECT_EQ(summary["evaluations"], (Json{last[4], last[5]}));
  train(tiny(), *this / "plain");
  EXPECT_TRUE(final_file(*this / "run", "model.safetensors") ==
              final_file(*this / "plain", "model.safetensors"))
      << "training does not depend on what is evaluated";
}

TEST_F(Training, EvaluatesOnceThoughItIsStoppedAndKilled) {
  std::int64_t calls = 0;
  train(tiny(), *this / "unbroken", evaluated(calls));
  // Before an evaluation; in it, which is then made up for; after it; at the end.
  for (const std::int64_t step : {3, 4, 5, 10}) {
    for (const bool during : {false, true}) {
      const fs::path run = *this / cat("stopped-", step, during).c_str();
      install_stop_handlers();
      TrainOptions options = evaluated(calls);
      if (during) {
        options.evaluate = [&, first = evaluated(calls).evaluate](const model::Gpt& model) {
          std::raise(SIGTERM);
          return stop_signal() != 0 ? std::nullopt : first(model);
        };
      } else {
        options.after_step = signal_after(step, SIGTERM).after_step;
      }
      EXPECT_THROW(train(tiny(), run, options), Interrupted);
      clear_stop_signal();
      options = evaluated(calls);
      options.resume = true;
      const Json summary = train(tiny(), run, options);
      EXPECT_EQ(summary["evaluations"].size(), 2u);
      expect_same_runs(run, *this / "unbroken");
    }
  }
}

/// A diagnosis that counts its calls and depends on the model.
TrainOptions diagnosed(std::int64_t& calls) {
  TrainOptions options;
  options.diagnose = [&calls](const model::Gpt& model, const data::Dataset& dataset) {
    ++calls;
    EXPECT_GT(dataset.train.tokens.size(), 0);
    const double weight = model.parameters().front().tensor.sum().item<double>();
    return Json{{"layers", {{{"layer", 0}, {"value_cosine", weight}}}}};
  };
  return options;
}

TEST_F(Training, DiagnosesNowAndThenAndAtTheEnd) {
  std::int64_t calls = 0;
  train(tiny(), *this / "plain", diagnosed(calls));
  EXPECT_EQ(calls, 0) << "by default never";
  RunConfig config = tiny();
  config.train.diagnose_every = 3;
  train(config, *this / "run", diagnosed(calls));
  std::vector<std::int64_t> steps;
  std::vector<Json> others;
  for (const Json& line : metrics_without_times(*this / "run")) {
    if (line["type"] != "diagnose") {
      others.push_back(line);
      continue;
    }
    steps.push_back(line["step"]);
    EXPECT_EQ(line["tokens"], steps.back() * 8 * 32);
    EXPECT_EQ(line["layers"].size(), 1u);
  }
  EXPECT_THAT(steps, ElementsAre(3, 6, 9, 10));
  EXPECT_EQ(others, metrics_without_times(*this / "plain"));
  EXPECT_TRUE(final_file(*this / "run", "model.safetensors") ==
              final_file(*this / "plain", "model.safetensors"))
      << "training does not depend on what is diagnosed";
}

TEST_F(Training, DiagnosesOnceThoughItIsStopped) {
  std::int64_t calls = 0;
  RunConfig config = tiny();
  config.train.diagnose_every = 3;
  train(config, *this / "unbroken", diagnosed(calls));
  // Before a diagnosis; in it, which is then made up for; after it; at the end.
  for (const std::int64_t step : {2, 3, 4, 10}) {
    for (const bool during : {false, true}) {
      const fs::path run = *this / cat("stopped-", step, during).c_str();
      install_stop_handlers();
      TrainOptions options = diagnosed(calls);
      if (during) {
        options.diagnose = [&, first = diagnosed(calls).diagnose](const model::Gpt& model,
                                                                  const data::Dataset& dataset) {
          std::raise(SIGTERM);
          return stop_signal() != 0 ? std::nullopt : first(model, dataset);
        };
      } else {
        options.after_step = signal_after(step, SIGTERM).after_step;
      }
      EXPECT_THROW(train(config, run, options), Interrupted);
      clear_stop_signal();
      options = diagnosed(calls);
      options.resume = true;
      train(config, run, options);
      expect_same_runs(run, *this / "unbroken");
    }
  }
}

}  // namespace
}  // namespace xsa::train
