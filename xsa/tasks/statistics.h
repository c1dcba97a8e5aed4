// Means, perplexities and their standard errors, summed in the harness's order: equal to its
// figures in every bit (Python up to 3.11; a newer Python's sum() rounds less).
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "xsa/base/parallel.h"

namespace xsa::tasks {

double mean(std::span<const double> values);
/// With n - 1; the values must be two or more.
double sample_deviation(std::span<const double> values);
/// sample_deviation / sqrt(n).
double mean_error(std::span<const double> values);

/// exp(-mean). Throws Error where it is beyond a double's range.
double perplexity(std::span<const double> log_likelihoods);

/// The deviation of `resamples` perplexities, each of n log-likelihoods drawn with replacement:
/// chunks of 1000, chunk i drawn by Python's random.Random(i).choices (fewer than 1000 resamples:
/// one chunk; what is over a multiple of 1000 is left out, as the harness does). Both must be two
/// or more. The result does not depend on the workers. Cost: 2 words of MT19937 a draw, 5153 x
/// 100,000 draws for LAMBADA. `progress` gets the resamples done, from one worker at a time.
/// Throws Interrupted when asked to stop.
double perplexity_error(std::span<const double> log_likelihoods, std::int64_t resamples,
                        const Parallel& parallel,
                        const std::function<void(std::int64_t done)>& progress = {});

}  // namespace xsa::tasks
