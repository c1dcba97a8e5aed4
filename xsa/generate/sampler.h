// From a row of logits to the next token. No Torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xsa/base/rng.h"
#include "xsa/text/tokenizer.h"

namespace xsa::generate {

/// p_i is proportional to exp(logit_i / temperature) over the tokens that are left by top_k, then
/// by top_p.
struct Sampling {
  double temperature = 1;  // 0: the largest logit, the first of equals
  std::int64_t top_k = 0;  // only the k largest, lower ids first among equals; 0: all
  double top_p = 1;        // only the fewest of those, largest first, whose shares sum to top_p
};

class Sampler {
 public:
  explicit Sampler(const Sampling& sampling) : sampling_(sampling) {}

  /// logits [V], V >= 1. Takes exactly one number from `rng` unless the temperature is 0. Throws
  /// Error for a logit that is NaN or +infinity; one of -infinity is never drawn.
  ///
  /// Linear in V: what top_k and top_p need sorted is cut off first.
  text::Token next(std::span<const float> logits, Rng& rng);

 private:
  void weigh(std::span<const float> logits, float largest);
  void keep_top_k(std::span<const float> logits);
  void keep_top_p();

  struct Candidate {
    double weight;  // exp((logit - largest) / temperature)
    text::Token token;
  };
  Sampling sampling_;
  std::vector<Candidate> candidates_;
};

/// The natural logarithm of a token's probability, whatever the sampling: logit - log sum exp.
double log_probability(std::span<const float> logits, text::Token token);

}  // namespace xsa::generate
