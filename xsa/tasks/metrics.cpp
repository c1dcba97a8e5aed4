#include "xsa/tasks/metrics.h"

#include <cmath>
#include <limits>

#include "xsa/base/error.h"
#include "xsa/tasks/statistics.h"

namespace xsa::tasks {
namespace {

/// A choice without characters is never the best (but by a log-likelihood of 0).
double per_character(double log_likelihood, std::int64_t length) {
  if (length > 0) return log_likelihood / static_cast<double>(length);
  return log_likelihood < 0 ? -std::numeric_limits<double>::infinity() : log_likelihood;
}

template <class Value>
std::int64_t first_best(std::size_t count, Value&& value) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < count; ++i)
    if (value(i) > value(best)) best = i;
  return static_cast<std::int64_t>(best);
}

/// Other figures stand beside it, which hours of scoring have brought.
double perplexity_or_infinity(std::span<const double> log_likelihoods) {
  return -mean(log_likelihoods) > std::log(std::numeric_limits<double>::max())
             ? std::numeric_limits<double>::infinity()
             : perplexity(log_likelihoods);
}

double sample_metric(const Task& task, Metric metric, const Sample& sample,
                     std::span<const Score> scores) {
  const auto likelihood = [&](std::size_t i) { return scores[i].log_likelihood; };
  switch (metric) {
    case Metric::kAccuracy:
      if (task.is_cloze()) return scores[0].greedy ? 1 : 0;
      return first_best(scores.size(), likelihood) == sample.gold ? 1 : 0;
    case Metric::kNormalizedAccuracy:
      return first_best(scores.size(),
                        [&](std::size_t i) {
                          return per_character(likelihood(i), sample.lengths[i]);
                        }) == sample.gold
                 ? 1
                 : 0;
    case Metric::kPerplexity:
      return likelihood(0);
  }
  throw Error("sample_metric: not a metric");
}

}  // namespace

std::vector<double> sample_metrics(const Task& task, const Sample& sample,
                                   std::span<const Score> scores) {
  check(scores.size() == sample.requests.size(), task.name, ", record ", sample.index,
        ": expected ", sample.requests.size(), " scores, got ", scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i)
    check(std::isfinite(scores[i].log_likelihood), task.name, ", record ", sample.index,
          ", choice ", i, ": the model's log-likelihood is ", scores[i].log_likelihood,
          ", which no metric can use; is the model's checkpoint sound?");
  std::vector<double> values;
  for (const Metric metric : task.metrics)
    values.push_back(sample_metric(task, metric, sample, scores));
  return values;
}

std::vector<Figure> task_figures(const Task& task, const std::vector<std::vector<double>>& values,
                                 const ErrorOptions& options) {
  check(!values.empty(), task.name, ": no samples, so no figures");
  std::vector<Figure> figures;
  for (std::size_t m = 0; m < task.metrics.size(); ++m) {
    std::vector<double> column;
    for (const std::vector<double>& row : values) column.push_back(row[m]);
    const bool is_perplexity = task.metrics[m] == Metric::kPerplexity;
    Figure figure = {
        task.metrics[m], is_perplexity ? perplexity_or_infinity(column) : mean(column), {}};
    if (options.resamples > 0 && column.size() > 1 && std::isfinite(figure.value)) {
      const auto progress = [&](std::int64_t done) {
        if (options.progress) options.progress(task.name, done);
      };
      const double error =
          is_perplexity ? perplexity_error(column, options.resamples, options.parallel, progress)
                        : mean_error(column);
      if (std::isfinite(error)) figure.error = error;
    }
    figures.push_back(figure);
  }
  return figures;
}

std::vector<std::span<const Score>> scores_by_sample(const std::vector<TaskSamples>& tasks,
                                                     std::span<const Score> scores) {
  std::vector<std::span<const Score>> cut;
  std::size_t requests = 0;
  for (const TaskSamples& task : tasks)
    for (const Sample& sample : task.samples) requests += sample.requests.size();
  check(requests == scores.size(), "expected ", requests, " scores, one a request, got ",
        scores.size());
  for (const TaskSamples& task : tasks)
    for (const Sample& sample : task.samples) {
      cut.push_back(scores.first(sample.requests.size()));
      scores = scores.subspan(sample.requests.size());
    }
  return cut;
}

}  // namespace xsa::tasks
