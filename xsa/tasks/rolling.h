// The log-likelihood of a whole text, longer than the model's context: in windows, and what is
// reported of it. Agrees with the harness's loglikelihood_rolling (context of one token).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/tasks/request.h"

namespace xsa::tasks {

/// Every token of `ids` is predicted exactly once. The first window's context is `prefix`, the
/// others' the token before; only the last one is shifted left, to see `length` tokens in all.
/// `length` (tokens that the model takes) is at least 1.
std::vector<Window> rolling_windows(std::span<const text::Token> ids, text::Token prefix,
                                    std::int64_t length);

/// Pieces between runs of white space, as Python's len(re.split(r"\s+", text)) counts them: 1 for
/// "", and one more for white space at either end.
std::int64_t count_words(std::string_view text);

/// A text's sum of log-likelihoods and its sizes.
struct RollingScore {
  double log_likelihood = 0;
  std::int64_t words = 0, bytes = 0;
};

/// word_perplexity, byte_perplexity and bits_per_byte over all texts together: weighted by words
/// and bytes, not by texts. Throws Error where a log-likelihood is not finite or nothing is there.
Json rolling_metrics(std::span<const RollingScore> scores);

}  // namespace xsa::tasks
