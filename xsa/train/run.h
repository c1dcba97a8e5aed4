// One training run at work: all that it holds. trainer.cpp has its course.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "xsa/base/progress.h"
#include "xsa/checkpoint/checkpoint.h"
#include "xsa/data/batch_reader.h"
#include "xsa/data/recorded.h"
#include "xsa/model/memory.h"
#include "xsa/train/batch.h"
#include "xsa/train/metrics.h"
#include "xsa/train/optimizer.h"
#include "xsa/train/standing.h"
#include "xsa/train/step_times.h"
#include "xsa/train/summary.h"
#include "xsa/train/tensorboard.h"
#include "xsa/train/trainer.h"

namespace xsa::train {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// One run. The constructor opens and makes all that can fail, and writes nothing into the folder.
class Run {
 public:
  Run(RunConfig config, std::filesystem::path folder, const TrainOptions& options,
      std::optional<checkpoint::Reader> saved);
  Json execute();

 private:
  void begin();
  void restore();
  void run_to_the_end();
  void train_step();
  double forward_backward();
  void log(const Json& line);
  void log_train_line(double gradient_norm, double lr);
  void validate_here();
  void evaluate_here();
  void diagnose_here();
  void show_progress();
  void save();
  void save_if_asked();
  [[noreturn]] void stop(int signal);
  void require_finite(double value, const char* what, std::int64_t step) const;
  Standing now() const;

  std::int64_t step_tokens() const { return train::step_tokens(config_); }
  bool due(std::int64_t every) const {
    return standing_.step % every == 0 || standing_.step == config_.train.steps;
  }
  bool is_best() const { return config_.train.keep_best && standing_.best_step == standing_.step; }
  bool diagnosis_due() const {
    return options_.diagnose && config_.train.diagnose_every > 0 &&
           due(config_.train.diagnose_every);
  }
  double tokens_per_s() const { return static_cast<double>(step_tokens()) / step_times_.median(); }
  double elapsed() const { return standing_.elapsed_s + seconds_since(start_); }
  std::int64_t tensor_peak() const {
    return std::max(standing_.peak_tensor_bytes, model::peak_tensor_bytes() - tensor_bytes_before_);
  }

  RunConfig config_;
  std::filesystem::path folder_;
  const TrainOptions& options_;
  std::optional<checkpoint::Reader> saved_;  // what it goes on from, until it has
  std::int64_t threads_, tensor_bytes_before_;
  data::RecordedData data_;
  data::Dataset& dataset_;
  Json conditions_;  // with the hash of the weights it began with, where those are another's
  data::TrainLoader loader_;  // where reading begins
  std::optional<data::BatchReader> reader_;
  model::Gpt model_;
  AdamW optimizer_;
  Batch batch_;
  Standing standing_;
  StepTimes step_times_;
  Json evaluations_ = Json::array();  // what options_.evaluate last gave
  double last_loss_ = 0;
  std::int64_t saved_step_ = -1;
  std::optional<MetricsFile> metrics_;
  std::optional<EventFile> events_;
  Progress progress_;
  Clock::time_point start_;
};

}  // namespace xsa::train
