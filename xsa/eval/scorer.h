// Log-likelihoods of continuations, as lm-evaluation-harness defines them (docs/evaluation.md),
// with every token computed once: no padding, shared beginnings shared, logits only where something
// is scored.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "xsa/eval/plan.h"
#include "xsa/model/decoder.h"
#include "xsa/tasks/request.h"

namespace xsa::eval {

/// The score of one item.
struct Scored {
  std::int64_t item;  // its index in what was asked
  tasks::Score score;
};

class Scorer {
 public:
  /// `vocabulary`: the tokenizer's size; rows of the output layer beyond it (padding) take no part
  /// in the softmax. Throws UsageError where the model has fewer.
  Scorer(const model::Gpt& model, std::int64_t vocabulary, const Budget& budget = {});

  /// Hands over the scores a pack at a time, in an order of its own. A log-likelihood is a sum in
  /// double of fp32 log-softmax values; greedy compares these, and the first index wins ties.
  /// `is_open`, where given: packs of which it knows no item are left out. The packs are the same
  /// whatever it says, so that an item's bits do not depend on which others were scored before.
  /// Throws Error for an item that has no context or no continuation, or a continuation longer than
  /// the model's context.
  void score(std::span<const Item> items, const std::function<void(std::span<const Scored>)>& take,
             const std::function<bool(std::int64_t item)>& is_open = {});

  std::int64_t context() const { return decoder_.config().context; }
  /// Tokens that have gone through the model's layers, and rows of logits made, so far.
  std::int64_t tokens_computed() const { return tokens_; }
  std::int64_t rows_scored() const { return rows_; }

 private:
  struct Pass;
  void score_pack(const Pack& pack, std::vector<Scored>& scores);
  void run(Pass& pass, std::vector<Scored>& scores);
  void score_rows(const at::Tensor& hidden, const Pass& pass, std::vector<Scored>& scores);
  /// Empty caches of at least these capacities; those of the pack before are used again.
  void make_caches(std::span<const std::int64_t> capacities);

  model::Decoder decoder_;
  std::int64_t vocabulary_;
  Budget budget_;
  std::vector<model::SequenceCache>
      caches_;  // the first for groups without a prefix, then one each
  std::int64_t tokens_ = 0, rows_ = 0;
};

}  // namespace xsa::eval
