#include "xsa/tasks/rolling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "xsa/base/error.h"
#include "xsa/text/case.h"

namespace xsa::tasks {

std::vector<Window> rolling_windows(std::span<const text::Token> ids, text::Token prefix,
                                    std::int64_t length) {
  check(length >= 1, "rolling windows: expected a context of 1 token or more, got ", length);
  const auto total = static_cast<std::int64_t>(ids.size());
  std::vector<Window> windows;
  for (std::int64_t begin = 0; begin < total; begin += length) {
    const std::int64_t end = std::min(begin + length, total);
    Window window;
    window.predicted.assign(ids.begin() + begin, ids.begin() + end);
    if (begin == 0) {
      window.context = {prefix};
    } else {  // what the model sees ends at end - 1 and is `length` long
      window.context.assign(ids.begin() + (end - length - 1), ids.begin() + begin);
    }
    windows.push_back(std::move(window));
  }
  return windows;
}

std::int64_t count_words(std::string_view text) {
  std::int64_t words = 1;
  bool space = false;
  for (std::size_t i = 0; i < text.size();) {
    // A character is space if stripping leaves nothing of it; UTF-8 has at most 4 bytes each.
    const auto byte_at = [&](std::size_t place) { return static_cast<unsigned char>(text[place]); };
    std::size_t end = i + 1;
    if (byte_at(i) >= 0xc0)
      while (end < text.size() && end < i + 4 && (byte_at(end) >> 6) == 2) ++end;
    const bool now = text::strip(text.substr(i, end - i)).empty();
    words += now && !space;
    space = now;
    i = end;
  }
  return words;
}

Json rolling_metrics(std::span<const RollingScore> scores) {
  double sum = 0;
  std::int64_t words = 0, bytes = 0;
  for (const RollingScore& score : scores) {
    check(std::isfinite(score.log_likelihood), "rolling log-likelihood: the model's is ",
          score.log_likelihood, "; is its checkpoint sound?");
    sum += score.log_likelihood;
    words += score.words;
    bytes += score.bytes;
  }
  check(bytes > 0, "rolling log-likelihood: expected a text, got ", scores.size(),
        " texts without a byte");
  const double per_word = sum / static_cast<double>(words);
  const double per_byte = sum / static_cast<double>(bytes);
  return {{"word_perplexity", std::exp(-per_word)},
          {"byte_perplexity", std::exp(-per_byte)},
          {"bits_per_byte", -per_byte / std::numbers::ln2}};
}

}  // namespace xsa::tasks
