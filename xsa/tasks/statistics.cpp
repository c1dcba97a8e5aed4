#include "xsa/tasks/statistics.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/signals.h"
#include "xsa/tasks/python_random.h"

namespace xsa::tasks {
namespace {

constexpr std::int64_t kChunk = 1000;

/// Fills `perplexities` from the generator seeded with the chunk's number.
void resample(std::span<const double> values, std::uint32_t seed, std::span<double> perplexities) {
  PythonRandom random(seed);
  const auto count = static_cast<double>(values.size());
  for (double& result : perplexities) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      sum += values[static_cast<std::size_t>(random.random() * count)];
    result = std::exp(-(sum / count));
  }
}

}  // namespace

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double sample_deviation(std::span<const double> values) {
  check(values.size() >= 2, "sample deviation: expected 2 values or more, got ", values.size());
  const double center = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - center) * (value - center);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double mean_error(std::span<const double> values) {
  return sample_deviation(values) / std::sqrt(static_cast<double>(values.size()));
}

double perplexity(std::span<const double> log_likelihoods) {
  const double average = mean(log_likelihoods), result = std::exp(-average);
  check(std::isfinite(result), "perplexity: the mean log-likelihood ", average,
        " gives no finite perplexity; is this a trained model, with its own tokenizer?");
  return result;
}

double perplexity_error(std::span<const double> log_likelihoods, std::int64_t resamples,
                        const Parallel& parallel,
                        const std::function<void(std::int64_t done)>& progress) {
  check(resamples >= 2, "perplexity's standard error: expected 2 resamples or more, got ",
        resamples);
  const std::int64_t chunk = std::min(kChunk, resamples), chunks = resamples / chunk;
  std::vector<double> perplexities(static_cast<std::size_t>(chunk * chunks));
  std::mutex mutex;
  std::int64_t done = 0;
  parallel.run(chunks, [&](std::int64_t index, std::int64_t) {
    if (const int signal = stop_signal())
      throw Interrupted(signal, "stopped while estimating a perplexity's standard error");
    resample(
        log_likelihoods, static_cast<std::uint32_t>(index),
        std::span(perplexities)
            .subspan(static_cast<std::size_t>(index * chunk), static_cast<std::size_t>(chunk)));
    const std::lock_guard lock(mutex);
    done += chunk;
    if (progress) progress(done);
  });
  return sample_deviation(perplexities);
}

}  // namespace xsa::tasks
