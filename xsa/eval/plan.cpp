#include "xsa/eval/plan.h"

#include <algorithm>
#include <map>
#include <utility>

namespace xsa::eval {
namespace {

using Tokens = std::vector<text::Token>;

/// What the model sees of an item: cut from the left, without the last token.
Tokens seen(const Item& item, std::int64_t context) {
  Tokens tokens(item.context.begin(), item.context.end());
  tokens.insert(tokens.end(), item.continuation.begin(), item.continuation.end());
  tokens.pop_back();
  const std::int64_t excess = std::ssize(tokens) - context;
  if (excess > 0) tokens.erase(tokens.begin(), tokens.begin() + excess);
  return tokens;
}

std::int64_t common_prefix(const std::vector<Tokens>& inputs) {
  const Tokens& first = inputs.front();
  std::int64_t shared = std::ssize(first);
  for (const Tokens& other : inputs) {
    const auto end = first.begin() + std::min(shared, std::ssize(other));
    shared = std::mismatch(first.begin(), end, other.begin()).first - first.begin();
  }
  return shared;
}

/// Equal elements once, in order of appearance; `where` gets each element's place in the result.
std::vector<Tokens> distinct(std::vector<Tokens> all, std::vector<std::int64_t>& where) {
  std::vector<Tokens> found;
  for (Tokens& tokens : all) {
    const auto place = std::find(found.begin(), found.end(), tokens);
    where.push_back(place - found.begin());
    if (place == found.end()) found.push_back(std::move(tokens));
  }
  return found;
}

/// One group of items[first, first + count).
Group make_group(std::span<const Item> items, std::int64_t first, std::int64_t count,
                 std::int64_t context) {
  std::vector<Tokens> inputs;
  std::vector<std::int64_t> branch_of;
  for (std::int64_t i = first; i < first + count; ++i)
    inputs.push_back(seen(items[static_cast<std::size_t>(i)], context));
  inputs = distinct(std::move(inputs), branch_of);
  const std::int64_t shared = inputs.size() > 1 ? common_prefix(inputs) : 0;

  Group group;
  group.items = count;
  group.prefix.assign(inputs.front().begin(), inputs.front().begin() + shared);
  for (std::int64_t i = 0; i < count; ++i) {
    const Item& item = items[static_cast<std::size_t>(first + i)];
    const std::int64_t branch = branch_of[static_cast<std::size_t>(i)];
    std::int64_t position =
        std::ssize(inputs[static_cast<std::size_t>(branch)]) - std::ssize(item.continuation);
    for (const text::Token token : item.continuation) {
      const bool in_prefix = position < shared;
      group.targets.push_back({.item = first + i,
                               .piece = in_prefix ? Target::kPrefix : branch,
                               .position = in_prefix ? position : position - shared,
                               .token = token});
      ++position;
    }
  }
  for (Tokens& tokens : inputs) {
    tokens.erase(tokens.begin(), tokens.begin() + shared);
    group.branches.push_back(std::move(tokens));
  }
  return group;
}

}  // namespace

bool is_truncated(const Item& item, std::int64_t context) {
  return std::ssize(item.context) + std::ssize(item.continuation) > context + 1;
}

std::vector<std::int64_t> first_equals(std::span<const Item> items, std::int64_t context) {
  using Ids = std::span<const text::Token>;
  const auto less = [](Ids a, Ids b) { return std::ranges::lexicographical_compare(a, b); };
  const auto pair_less = [&](const std::pair<Ids, Ids>& a, const std::pair<Ids, Ids>& b) {
    if (!std::ranges::equal(a.second, b.second)) return less(a.second, b.second);
    return less(a.first, b.first);
  };
  std::map<std::pair<Ids, Ids>, std::int64_t, decltype(pair_less)> seen(pair_less);
  std::vector<std::int64_t> first;
  for (const Item& item : items) {
    const std::int64_t room = context + 1 - std::ssize(item.continuation);
    const std::int64_t length = std::clamp<std::int64_t>(room, 0, std::ssize(item.context));
    const Ids context_seen = item.context.last(static_cast<std::size_t>(length));
    const auto [found, is_new] =
        seen.emplace(std::pair(context_seen, item.continuation), std::ssize(first));
    first.push_back(found->second);
  }
  return first;
}

std::int64_t Group::tokens() const {
  std::int64_t count = std::ssize(prefix);
  for (const Tokens& branch : branches) count += std::ssize(branch);
  return count;
}

std::int64_t Group::longest_branch() const {
  std::int64_t longest = 0;
  for (const Tokens& branch : branches) longest = std::max(longest, std::ssize(branch));
  return longest;
}

std::vector<Pack> plan(std::span<const Item> items, std::int64_t context, const Budget& budget) {
  std::vector<Group> groups;
  for (std::int64_t first = 0, end = 0; first < std::ssize(items); first = end) {
    const auto same = [&](std::int64_t i) {
      return items[static_cast<std::size_t>(i)].record ==
             items[static_cast<std::size_t>(first)].record;
    };
    for (end = first; end < std::ssize(items) && same(end); ++end)
      if (budget.items > 0 && end - first == budget.items) break;
    groups.push_back(make_group(items, first, end - first, context));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.tokens() > b.tokens(); });

  std::vector<Pack> packs;
  std::int64_t tokens = 0, count = 0;
  for (Group& group : groups) {
    const bool fits = tokens + group.tokens() <= budget.tokens &&
                      (budget.items == 0 || count + group.items <= budget.items);
    if (packs.empty() || !fits) {
      packs.emplace_back();
      tokens = count = 0;
    }
    tokens += group.tokens();
    count += group.items;
    packs.back().push_back(std::move(group));
  }
  return packs;
}

}  // namespace xsa::eval
