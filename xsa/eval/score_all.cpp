#include "xsa/eval/score_all.h"

#include <chrono>
#include <cmath>
#include <optional>

#include "xsa/base/error.h"
#include "xsa/base/progress.h"
#include "xsa/base/signals.h"

namespace xsa::eval {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Throws Interrupted if a signal has asked to stop.
void check_stop(std::int64_t done, std::int64_t total, const Journal* journal) {
  const int signal = stop_signal();
  if (signal == 0) return;
  throw Interrupted(signal,
                    cat("eval: stopped after ", done, " of ", total, " requests; ",
                        journal == nullptr ? "with --output it would have continued from here"
                                           : "the same command continues from here"));
}

void check_finite(const Scored& scored, const ScoreOptions& options) {
  check(std::isfinite(scored.score.log_likelihood),
        "eval: ", options.name ? options.name(scored.item) : cat("request ", scored.item),
        ": the model gives a log-likelihood of ", scored.score.log_likelihood,
        ", expected a finite one; are the weights finite?");
}

}  // namespace

std::vector<tasks::Score> score_all(Scorer& scorer, std::span<const Item> items,
                                    const ScoreOptions& options) {
  std::vector<tasks::Score> scores(items.size());
  std::vector<Item> open;
  std::vector<std::int64_t> number;  // in `items`, of an open one
  for (std::int64_t i = 0; i < std::ssize(items); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (options.journal != nullptr && options.journal->scores()[at]) {
      scores[at] = *options.journal->scores()[at];
    } else {
      open.push_back(items[at]);
      number.push_back(i);
    }
  }

  const std::int64_t total = std::ssize(items), before = total - std::ssize(open);
  std::int64_t done = before;
  std::optional<Progress> bar;
  if (options.progress) bar.emplace(options.label, total, "request").start_at(before);
  const auto start = std::chrono::steady_clock::now();
  check_stop(done, total, options.journal);
  std::vector<Scored> finished;
  scorer.score(open, [&](std::span<const Scored> pack) {
    finished.assign(pack.begin(), pack.end());
    for (Scored& scored : finished) {
      scored.item = number[static_cast<std::size_t>(scored.item)];
      check_finite(scored, options);
      scores[static_cast<std::size_t>(scored.item)] = scored.score;
    }
    if (options.journal != nullptr) options.journal->add(finished);
    done += std::ssize(finished);
    const double rate = static_cast<double>(done - before) / seconds_since(start);
    if (bar) bar->update(done, short_count(rate) + " requests/s");
    if (done < total) check_stop(done, total, options.journal);
  });
  return scores;
}

}  // namespace xsa::eval
