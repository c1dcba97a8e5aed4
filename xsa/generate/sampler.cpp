#include "xsa/generate/sampler.h"

#include <algorithm>
#include <cmath>

#include "xsa/base/error.h"

namespace xsa::generate {
namespace {

/// The place of the largest logit, the first of equals.
std::size_t largest_of(std::span<const float> logits) {
  std::size_t best = 0;
  bool finite = true;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    finite = finite && logits[i] < INFINITY;  // false for NaN
    if (logits[i] > logits[best]) best = i;
  }
  check(finite && logits[best] > -INFINITY,
        "sampling: the model's logits are not finite; its weights are damaged, or too large");
  return best;
}

constexpr auto kHeavier = [](const auto& a, const auto& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
};

}  // namespace

text::Token Sampler::next(std::span<const float> logits, Rng& rng) {
  const std::size_t best = largest_of(logits);
  if (sampling_.temperature == 0) return static_cast<text::Token>(best);
  weigh(logits, logits[best]);
  keep_top_k(logits);
  keep_top_p();
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  double left = rng.uniform() * total;
  text::Token last = candidates_.front().token;
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight == 0) continue;
    last = candidate.token;
    left -= candidate.weight;
    if (left < 0) break;
  }
  return last;
}

void Sampler::weigh(std::span<const float> logits, float largest) {
  candidates_.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    // Divided in double: the reciprocal of a tiny temperature is no float.
    const double power = (static_cast<double>(logits[i]) - largest) / sampling_.temperature;
    candidates_[i] = {std::exp(static_cast<float>(std::max(power, -1000.0))),
                      static_cast<text::Token>(i)};
  }
}

void Sampler::keep_top_k(std::span<const float> logits) {
  const auto k = static_cast<std::size_t>(sampling_.top_k);
  if (k == 0 || k >= candidates_.size()) return;
  // By logits: different ones may have equal weights.
  std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(k) - 1,
                   candidates_.end(), [&](const Candidate& a, const Candidate& b) {
                     const float x = logits[a.token], y = logits[b.token];
                     return x != y ? x > y : a.token < b.token;
                   });
  candidates_.resize(k);
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
}

void Sampler::keep_top_p() {
  if (sampling_.top_p >= 1) return;
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  // Sorted piece by piece, each twice the last one, until there is enough.
  std::size_t sorted = 0, wanted = 64;
  double sum = 0;
  for (;;) {
    wanted = std::min(wanted, candidates_.size());
    const auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(sorted);
    const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(wanted);
    if (end != candidates_.end()) std::nth_element(begin, end, candidates_.end(), kHeavier);
    std::sort(begin, end, kHeavier);
    for (; sorted < wanted; ++sorted) {
      sum += candidates_[sorted].weight;
      if (sum < sampling_.top_p * total && sorted + 1 < candidates_.size()) continue;
      candidates_.resize(sorted + 1);
      return;
    }
    wanted *= 2;
  }
}

double log_probability(std::span<const float> logits, text::Token token) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return static_cast<double>(logits[token]) - largest - std::log(sum);
}

}  // namespace xsa::generate
