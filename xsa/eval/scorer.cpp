#include "xsa/eval/scorer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <utility>

#include "xsa/base/error.h"

namespace xsa::eval {
namespace {

/// Logits that exist at once: 64 MiB.
constexpr std::int64_t kLogits = 16 << 20;

void check_items(std::span<const Item> items, std::int64_t context) {
  for (const Item& item : items) {
    check(!item.context.empty() && !item.continuation.empty(),
          "eval: expected at least one token of context and one to score in each request");
    check(std::ssize(item.continuation) <= context, "eval: a continuation has ",
          item.continuation.size(), " tokens, more than the model's context, ", context,
          "; use a model with a longer context, or leave the record out");
  }
}

bool holds_one(const Pack& pack, const std::function<bool(std::int64_t item)>& wanted) {
  return std::ranges::any_of(pack, [&](const Group& group) {
    return std::ranges::any_of(group.targets,
                               [&](const Target& target) { return wanted(target.item); });
  });
}

}  // namespace

/// One call of the model: pieces of several groups, and what their logits score.
struct Scorer::Pass {
  struct Cell {
    std::int64_t row;  // in `rows`
    std::int64_t token;
    std::int64_t score;  // index in the pack's scores
  };
  std::vector<std::int64_t> tokens;
  std::vector<model::Segment> segments;
  std::vector<std::int64_t> rows;  // places in `tokens` whose logits are needed
  std::vector<Cell> cells;         // in the order of rows

  /// Appends a piece of a group. `first_score` is the index of the score of item `first_item`.
  void add(const std::vector<text::Token>& piece, std::int64_t number, const Group& group,
           model::Segment segment, std::int64_t score_offset) {
    if (piece.empty()) return;
    std::multimap<std::int64_t, const Target*> by_position;  // equal places share a row
    for (const Target& target : group.targets)
      if (target.piece == number) by_position.emplace(target.position, &target);
    const std::int64_t begin = std::ssize(tokens);
    for (const auto& [position, target] : by_position) {
      if (rows.empty() || rows.back() != begin + position) rows.push_back(begin + position);
      cells.push_back({std::ssize(rows) - 1, target->token, target->item + score_offset});
    }
    tokens.insert(tokens.end(), piece.begin(), piece.end());
    segments.push_back(segment);
  }
};

Scorer::Scorer(const model::Gpt& model, std::int64_t vocabulary, const Budget& budget)
    : decoder_(model), vocabulary_(vocabulary), budget_(budget) {
  check_usage(vocabulary <= model.config().vocab_size, "eval: the tokenizer has ", vocabulary,
              " tokens, the model's embedding only ", model.config().vocab_size,
              " rows; use the model's own tokenizer");
}

void Scorer::score(std::span<const Item> items,
                   const std::function<void(std::span<const Scored>)>& take,
                   const std::function<bool(std::int64_t item)>& is_open) {
  const at::InferenceMode guard;
  check_items(items, context());
  for (const Pack& pack : plan(items, context(), budget_)) {
    if (is_open && !holds_one(pack, is_open)) continue;
    std::vector<Scored> scores;
    score_pack(pack, scores);
    take(scores);
  }
}

// The shared beginnings of all groups go first, then all that follows them: two calls, each with
// many rows for the linear layers. Groups without a beginning take turns in one cache.
void Scorer::score_pack(const Pack& pack, std::vector<Scored>& scores) {
  std::vector<std::int64_t> capacities = {0};
  for (const Group& group : pack) {
    const std::int64_t length = std::ssize(group.prefix) + group.longest_branch();
    if (group.prefix.empty()) {
      capacities.front() = std::max(capacities.front(), length);
    } else {
      capacities.push_back(length);
    }
  }
  make_caches(capacities);

  Pass prefixes, branches;
  std::size_t last_cache = 0;
  for (const Group& group : pack) {
    const std::int64_t first_item = group.targets.front().item;
    const std::int64_t offset = std::ssize(scores) - first_item;
    for (std::int64_t i = 0; i < group.items; ++i)
      scores.push_back({first_item + i, {.log_likelihood = 0, .greedy = true}});
    model::SequenceCache* const cache = &caches_[group.prefix.empty() ? 0 : ++last_cache];
    prefixes.add(group.prefix, Target::kPrefix, group, {std::ssize(group.prefix), cache, true},
                 offset);
    for (std::int64_t b = 0; b < std::ssize(group.branches); ++b) {
      const std::vector<text::Token>& branch = group.branches[static_cast<std::size_t>(b)];
      branches.add(branch, b, group, {std::ssize(branch), cache, false}, offset);
    }
  }
  run(prefixes, scores);
  run(branches, scores);
}

void Scorer::make_caches(std::span<const std::int64_t> capacities) {
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    if (i == caches_.size()) caches_.emplace_back(decoder_.config(), capacities[i]);
    if (caches_[i].capacity() < capacities[i])
      caches_[i] = model::SequenceCache(decoder_.config(), capacities[i]);
    caches_[i].truncate(0);
  }
}

void Scorer::run(Pass& pass, std::vector<Scored>& scores) {
  if (pass.segments.empty()) return;
  tokens_ += std::ssize(pass.tokens);
  rows_ += std::ssize(pass.rows);
  const at::Tensor tokens = at::from_blob(pass.tokens.data(), {std::ssize(pass.tokens)}, at::kLong);
  const at::Tensor rows = at::from_blob(pass.rows.data(), {std::ssize(pass.rows)}, at::kLong);
  score_rows(decoder_.forward(tokens, pass.segments, rows), pass, scores);
}

// hidden [R, C]: the rows that score something.
void Scorer::score_rows(const at::Tensor& hidden, const Pass& pass, std::vector<Scored>& scores) {
  const std::int64_t at_once = std::max<std::int64_t>(1, kLogits / vocabulary_);
  auto cell = pass.cells.begin();
  for (std::int64_t first = 0; first < hidden.size(0); first += at_once) {
    const std::int64_t count = std::min(at_once, hidden.size(0) - first);
    at::Tensor log_p = decoder_.logits(hidden.narrow(0, first, count), vocabulary_);  // [count, V]
    at::_log_softmax_out(log_p, log_p, 1, /*half_to_float=*/false);
    const at::Tensor best = log_p.amax(1);  // [count]
    const float* const best_data = best.const_data_ptr<float>();
    const float* const data = log_p.const_data_ptr<float>();
    for (; cell != pass.cells.end() && cell->row < first + count; ++cell) {
      const float* const row = data + (cell->row - first) * vocabulary_;
      const float own = row[cell->token];
      tasks::Score& score = scores[static_cast<std::size_t>(cell->score)].score;
      score.log_likelihood += static_cast<double>(own);
      // Not below the best, and nothing equal before it.
      const bool is_first_best = own == best_data[cell->row - first] &&
                                 std::find(row, row + cell->token, own) == row + cell->token;
      score.greedy = score.greedy && is_first_best;
    }
  }
}

}  // namespace xsa::eval
