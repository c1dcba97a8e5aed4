// From scores to figures: per record and over a task.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "xsa/base/parallel.h"
#include "xsa/tasks/request.h"
#include "xsa/tasks/task.h"

namespace xsa::tasks {

/// One value for each of the task's metrics, in their order. acc: whether the choice of highest
/// log-likelihood is the right one (of equals, the first); LAMBADA: whether the word is what the
/// model would say. acc_norm: the same of log-likelihood per character of the choice. perplexity:
/// the word's log-likelihood itself. Throws Error for a score that is not finite.
std::vector<double> sample_metrics(const Task& task, const Sample& sample,
                                   std::span<const Score> scores);

struct Figure {
  Metric metric;
  double value = 0;             // a perplexity beyond a double is infinite (null in JSON)
  std::optional<double> error;  // standard error; none of one sample, or beyond a double
};

struct ErrorOptions {
  std::int64_t resamples = 100'000;  // of perplexity; 0: no standard errors at all
  Parallel parallel = serial();
  /// Gets a task's resamples done, of `resamples`.
  std::function<void(const std::string& task, std::int64_t done)> progress;
};

/// The figures of one task, one for each of its metrics. `values` has sample_metrics of each
/// sample; there must be one at least.
std::vector<Figure> task_figures(const Task& task, const std::vector<std::vector<double>>& values,
                                 const ErrorOptions& options);

/// The scores of each sample, cut from those of all requests in order. Throws Error unless there
/// are as many as requests.
std::vector<std::span<const Score>> scores_by_sample(const std::vector<TaskSamples>& tasks,
                                                     std::span<const Score> scores);

}  // namespace xsa::tasks
