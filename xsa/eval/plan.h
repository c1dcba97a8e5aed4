// Which tokens are computed to score continuations, and in what company: each beginning that a
// record's choices share once, long records first, as many to a pass as a budget of tokens allows.
// Sizes and indices alone; no model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xsa/text/tokenizer.h"

namespace xsa::eval {

/// One continuation to score after one context, neither empty: ids that live elsewhere.
/// Neighbours with equal `record` are a record's choices: their common beginning is shared.
struct Item {
  std::span<const text::Token> context, continuation;
  std::int64_t record = 0;
};

/// What the model sees of an item is the last context + 1 tokens, without the last one.
bool is_truncated(const Item& item, std::int64_t context);

/// For each item the first one that asks the model the same: for the same continuation after the
/// same tokens that it sees. Scored once, equal choices have equal scores.
std::vector<std::int64_t> first_equals(std::span<const Item> items, std::int64_t context);

/// The logits after token `position` of `piece` (kPrefix, or a branch's number) score `token`.
struct Target {
  static constexpr std::int64_t kPrefix = -1;
  std::int64_t item;  // its index in what was planned
  std::int64_t piece, position;
  text::Token token;
};

/// Items that are computed together: prefix ++ branch is what the model sees of one or several of
/// them. Without a prefix there is one branch.
struct Group {
  std::vector<text::Token> prefix;
  std::vector<std::vector<text::Token>> branches;
  std::vector<Target> targets;
  std::int64_t items = 0;

  std::int64_t tokens() const;
  std::int64_t longest_branch() const;
};

/// Groups that go through the model together.
using Pack = std::vector<Group>;

struct Budget {
  std::int64_t tokens = 2048;  // of a pack; a group that has more goes alone
  std::int64_t items = 0;      // of a pack at most, so of a group as well; 0: any number
};

/// The order is that of falling length, then of the items: it depends on nothing else. `context`
/// is the most tokens that the model takes; a continuation is at most that long.
std::vector<Pack> plan(std::span<const Item> items, std::int64_t context, const Budget& budget);

}  // namespace xsa::eval
