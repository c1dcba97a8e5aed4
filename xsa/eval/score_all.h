// Scores a list of requests to its end: with progress, kept scores, and a stop when asked.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "xsa/eval/journal.h"
#include "xsa/eval/scorer.h"

namespace xsa::eval {

struct ScoreOptions {
  std::string label = "eval";  // before the progress bar
  bool progress = true;
  Journal* journal = nullptr;  // of the same items; may be null
  /// What an error calls an item: "piqa, record 17, choice 0".
  std::function<std::string(std::int64_t item)> name;
};

/// A score for each item; items that ask the same are computed once, and have the same. Items that
/// the journal holds keep their scores; where an item of a pack is missing, the pack is computed
/// as it was, so that the item's score is what it would have been. Throws Interrupted when asked
/// to stop, what is done being in the journal; Error naming the item where a score is
/// not finite.
std::vector<tasks::Score> score_all(Scorer& scorer, std::span<const Item> items,
                                    const ScoreOptions& options);

}  // namespace xsa::eval
