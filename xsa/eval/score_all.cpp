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

/// The items that ask different questions, and the places of all that ask each.
struct Distinct {
  std::vector<Item> items;
  std::vector<std::vector<std::int64_t>> places;  // in what was asked, by place in `items`

  Distinct(std::span<const Item> all, std::int64_t context) {
    std::vector<std::size_t> place(all.size());  // in `items`
    const std::vector<std::int64_t> first = first_equals(all, context);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto same = static_cast<std::size_t>(first[i]);
      place[i] = same == i ? items.size() : place[same];
      if (same == i) {
        items.push_back(all[i]);
        places.emplace_back();
      }
      places[place[i]].push_back(static_cast<std::int64_t>(i));
    }
  }
};

}  // namespace

std::vector<tasks::Score> score_all(Scorer& scorer, std::span<const Item> items,
                                    const ScoreOptions& options) {
  const Distinct distinct(items, scorer.context());
  std::vector<std::optional<tasks::Score>> kept(items.size());
  if (options.journal != nullptr) kept = options.journal->scores();
  std::vector<tasks::Score> scores(items.size());
  std::vector<char> done_items(distinct.items.size(), 0);
  std::vector<Scored> finished;
  /// Gives all that ask the same question its score; those that have none yet go to `finished`.
  const auto answer = [&](std::size_t question, const tasks::Score& score) {
    done_items[question] = 1;
    for (const std::int64_t place : distinct.places[question]) {
      const auto at = static_cast<std::size_t>(place);
      scores[at] = score;
      if (!kept[at]) finished.push_back({place, score});
      kept[at] = score;
    }
  };
  const std::int64_t total = std::ssize(items);
  const std::int64_t before =
      total - std::ranges::count(kept, false, [](const auto& score) { return score.has_value(); });
  for (std::size_t question = 0; question < distinct.items.size(); ++question)
    for (const std::int64_t place : distinct.places[question])
      if (const auto score = kept[static_cast<std::size_t>(place)]) {
        answer(question, *score);
        break;
      }
  if (!finished.empty()) options.journal->add(finished);

  std::int64_t done = before + std::ssize(finished);
  std::optional<Progress> bar;
  if (options.progress) bar.emplace(options.label, total, "request").start_at(done);
  const auto start = std::chrono::steady_clock::now();
  check_stop(done, total, options.journal);
  const auto is_open = [&](std::int64_t question) {
    return done_items[static_cast<std::size_t>(question)] == 0;
  };
  scorer.score(
      distinct.items,
      [&](std::span<const Scored> pack) {
        finished.clear();
        for (const Scored& scored : pack) {
          if (!is_open(scored.item)) continue;  // computed again beside what was not
          const auto question = static_cast<std::size_t>(scored.item);
          check_finite({distinct.places[question].front(), scored.score}, options);
          answer(question, scored.score);
        }
        if (options.journal != nullptr) options.journal->add(finished);
        done += std::ssize(finished);
        const double rate = static_cast<double>(done - before) / seconds_since(start);
        if (bar) bar->update(done, short_count(rate) + " requests/s");
        if (done < total) check_stop(done, total, options.journal);
      },
      is_open);
  return scores;
}

}  // namespace xsa::eval
