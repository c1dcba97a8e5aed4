#include "xsa/text/pair_merger.h"

#include <algorithm>
#include <array>
#include <bit>

#include "xsa/base/error.h"

namespace xsa::text {
namespace {

constexpr std::size_t kShort = 96;
constexpr std::uint32_t kNowhere = 0xFFFFFFFF;

}  // namespace

void PairMerger::merge(std::string_view piece, std::vector<Id>& ids) {
  piece.size() <= kShort ? merge_short(piece, ids) : merge_long(piece, ids);
}

void PairMerger::merge_short(std::string_view piece, std::vector<Id>& ids) {
  std::array<Id, kShort> tokens, ranks;  // ranks[i]: what tokens i and i + 1 merge into
  std::size_t count = piece.size();
  for (std::size_t i = 0; i < count; ++i) tokens[i] = vocabulary_.byte_token(piece[i]);
  for (std::size_t i = 0; i + 1 < count; ++i)
    ranks[i] = vocabulary_.merge_bytes(piece[i], piece[i + 1]);
  while (count > 1) {
    const auto last = ranks.begin() + static_cast<std::ptrdiff_t>(count - 1);
    const auto lowest = std::min_element(ranks.begin(), last);
    if (*lowest == kNoId) break;
    const auto at = static_cast<std::size_t>(lowest - ranks.begin());
    tokens[at] = *lowest;
    std::copy(tokens.begin() + at + 2, tokens.begin() + count, tokens.begin() + at + 1);
    if (at + 2 < count) {
      std::copy(ranks.begin() + at + 2, ranks.begin() + count - 1, ranks.begin() + at + 1);
      ranks[at] = vocabulary_.merge(tokens[at], tokens[at + 1]);
    }
    if (at > 0) ranks[at - 1] = vocabulary_.merge(tokens[at - 1], tokens[at]);
    --count;
  }
  ids.insert(ids.end(), tokens.begin(), tokens.begin() + count);
}

void PairMerger::merge_long(std::string_view piece, std::vector<Id>& ids) {
  check(piece.size() < kNowhere / 3, "gpt2 tokenizer: expected words of less than 1.4 GB, got ",
        piece.size(), " bytes without a border; is this text?");
  const auto count = static_cast<std::uint32_t>(piece.size());
  tokens_.resize(count);
  next_.resize(count);
  before_.resize(count);
  first_.resize(Gpt2Vocabulary::kTokens, kNowhere);
  used_.resize(Gpt2Vocabulary::kTokens / 64 + 1, 0);
  candidates_.clear();
  lowest_word_ = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    tokens_[i] = vocabulary_.byte_token(piece[i]);
    next_[i] = i + 1 < count ? i + 1 : kNowhere;
    before_[i] = i - 1;  // kNowhere for 0
    if (i + 1 < count) add_candidate(i, vocabulary_.merge_bytes(piece[i], piece[i + 1]));
  }
  for (Id rank; (rank = lowest_rank()) != kNoId;) {
    take_candidates(rank);
    merge_candidates(rank);
  }
  for (std::uint32_t i = 0; i != kNowhere; i = next_[i]) ids.push_back(tokens_[i]);
}

void PairMerger::add_candidate(std::uint32_t place, Id merged) {
  if (merged == kNoId) return;
  candidates_.push_back({place, first_[merged]});
  first_[merged] = static_cast<std::uint32_t>(candidates_.size() - 1);
  used_[merged / 64] |= std::uint64_t{1} << merged % 64;
}

Id PairMerger::lowest_rank() {
  for (; lowest_word_ < used_.size(); ++lowest_word_)
    if (used_[lowest_word_] != 0)
      return static_cast<Id>(lowest_word_ * 64 +
                             static_cast<std::size_t>(std::countr_zero(used_[lowest_word_])));
  return kNoId;
}

/// Into places_, from left to right: the order matters where pairs overlap, as in "aaa".
void PairMerger::take_candidates(Id merged) {
  places_.clear();
  for (std::uint32_t i = first_[merged]; i != kNowhere; i = candidates_[i].next)
    places_.push_back(candidates_[i].place);
  first_[merged] = kNowhere;
  used_[merged / 64] &= ~(std::uint64_t{1} << merged % 64);
  std::reverse(places_.begin(), places_.end());
  if (!std::is_sorted(places_.begin(), places_.end())) std::sort(places_.begin(), places_.end());
}

void PairMerger::merge_candidates(Id merged) {
  const Gpt2Vocabulary::Halves halves = vocabulary_.halves(merged);
  for (const std::uint32_t place : places_) {
    const std::uint32_t right = next_[place];
    // A merge since may have taken either half.
    if (tokens_[place] != halves.left || right == kNowhere || tokens_[right] != halves.right)
      continue;
    const std::uint32_t after = next_[right], left = before_[place];
    tokens_[place] = merged;
    tokens_[right] = kNoId;
    next_[place] = after;
    if (after != kNowhere) {
      before_[after] = place;
      add_candidate(place, vocabulary_.merge(merged, tokens_[after]));
    }
    if (left != kNowhere) add_candidate(left, vocabulary_.merge(tokens_[left], merged));
  }
}

}  // namespace xsa::text
