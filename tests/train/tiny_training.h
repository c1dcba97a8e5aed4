// A run that trains in a moment, and what it left: for every test of training.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"
#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/rng.h"
#include "xsa/base/signals.h"
#include "xsa/checkpoint/checkpoint.h"
#include "xsa/train/tensorboard.h"
#include "xsa/train/trainer.h"

namespace xsa::train {

namespace fs = std::filesystem;

/// Sentences of a small grammar: letters are hard to guess alone and easy in their context.
inline std::string made_text() {
  constexpr std::array kWho = {"the old king", "a young fool", "my good lord", "her quiet sister"};
  constexpr std::array kDoes = {"remembers", "will never find", "has lost", "sings of"};
  constexpr std::array kWhat = {"the crown", "a silver ring", "that winter", "the long road home"};
  Rng rng(7);
  std::string text;
  for (int sentence = 0; sentence < 1200; ++sentence)
    text += cat(kWho[rng.below(4)], " ", kDoes[rng.below(4)], " ", kWhat[rng.below(4)], ".\n");
  return text;
}

/// Two layers of width 32 on the made text. One thread: two spin for long where others run too.
inline RunConfig tiny(const fs::path& root) {
  if (!fs::exists(root / "text.txt")) atomic_write(root / "text.txt", made_text());
  RunConfig config;
  config.model = {.layers = 2, .width = 32, .heads = 2, .head_dim = 16, .context = 32};
  config.data = {.source = (root / "text.txt").string(), .cache = (root / "cache").string()};
  config.train.steps = 10;
  config.train.batch_size = 8;
  config.train.lr = 1e-2;
  config.train.warmup_steps = 2;
  config.train.threads = 1;
  config.train.log_every = 3;
  config.train.eval_every = 4;
  config.train.eval_rows = 10;
  config.train.checkpoint_every = 2;
  return config;
}

inline std::vector<Json> metrics_of(const fs::path& run) {
  std::istringstream text(read_file(run / "metrics.jsonl"));
  std::vector<Json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

inline std::vector<Json> metrics_without_times(const fs::path& run) {
  std::vector<Json> lines = metrics_of(run);
  for (Json& line : lines) {
    for (const char* timed : {"tokens_per_s", "data_wait_s", "elapsed_s"}) line.erase(timed);
  }
  return lines;
}

inline std::string final_file(const fs::path& run, const char* name) {
  return read_file(*checkpoint::latest(run / "checkpoints") / name);
}

inline void expect_same_runs(const fs::path& run, const fs::path& expected) {
  EXPECT_EQ(metrics_without_times(run), metrics_without_times(expected));
  EXPECT_EQ(fs::file_size(run / kEventFile), fs::file_size(expected / kEventFile));
  for (const char* file : {"model.safetensors", "optimizer.safetensors"})
    EXPECT_TRUE(final_file(run, file) == final_file(expected, file)) << file;
}

class Training : public ::testing::Test {
 protected:
  void SetUp() override {
    install_stop_handlers();
    clear_stop_signal();
  }
  void TearDown() override { clear_stop_signal(); }

  fs::path operator/(const char* name) const { return folder_ / name; }
  RunConfig tiny() const { return train::tiny(folder_.path()); }

  testing::TempFolder folder_;
};

inline TrainOptions signal_after(std::int64_t stop_step, int signal) {
  TrainOptions options;
  options.after_step = [=](std::int64_t step) {
    if (step != stop_step) return;
    install_stop_handlers();  // after an earlier signal the next one would end the program
    std::raise(signal);
  };
  return options;
}

}  // namespace xsa::train
