#include "xsa/text/pair_merger.h"

#include <algorithm>
#include <array>
#include <bit>

#include "xsa/base/error.h"

namespace xsa::text {
namespace {

constexpr std::size_t kShort = 96;
constexpr std::size_t kKept = std::size_t{1} << 20;  // of a longer piece the memory is given back
constexpr std::uint32_t kNowhere = 0xFFFFFFFF;

}  // namespace

void PairMerger::merge(std::string_view piece, std::vector<Id>& ids) {
  piece.size() <= kShort ? merge_short(piece, ids) : merge_long(piece, ids);
}

void PairMerger::merge_short(std::string_view piece, std::vector<Id>& ids) {
  // By place, as in merge_long; ranks[i]: what the token at i and its right neighbour merge into.
  std::array<Id, kShort> tokens, ranks;
  std::array<std::uint8_t, kShort> next, before;
  const std::size_t count = piece.size();
  const std::size_t padded = (count + 7) / 8 * 8;
  for (std::size_t i = 0; i < count; ++i) {
    tokens[i] = vocabulary_.byte_token(piece[i]);
    ranks[i] = i + 1 < count ? vocabulary_.merge_bytes(piece[i], piece[i + 1]) : kNoId;
    next[i] = static_cast<std::uint8_t>(i + 1);
    before[i] = static_cast<std::uint8_t>(i - 1);
  }
  std::fill(ranks.begin() + count, ranks.begin() + padded, kNoId);
  while (true) {
    Id lowest = kNoId;
    for (std::size_t i = 0; i < padded; ++i) lowest = std::min(lowest, ranks[i]);
    if (lowest == kNoId) break;
    std::size_t at = 0;
    while (ranks[at] != lowest) ++at;
    const std::size_t right = next[at], after = next[right];
    tokens[at] = lowest;
    ranks[right] = kNoId;
    next[at] = static_cast<std::uint8_t>(after);
    ranks[at] = kNoId;
    if (after < count) {
      before[after] = static_cast<std::uint8_t>(at);
      ranks[at] = vocabulary_.merge(lowest, tokens[after]);
    }
    if (at > 0) ranks[before[at]] = vocabulary_.merge(tokens[before[at]], lowest);
  }
  for (std::size_t i = 0; i < count; i = next[i]) ids.push_back(tokens[i]);
}

void PairMerger::merge_long(std::string_view piece, std::vector<Id>& ids) {
  if (piece.size() >= kNowhere)
    throw Error(cat("gpt2 tokenizer: expected words of less than 4 GiB, got ", piece.size(),
                    " bytes without a border; is this text?"));
  start(piece);
  for (Id rank; (rank = lowest_rank()) != kNoId;) {
    take_candidates(rank);
    merge_candidates(rank);
  }
  for (std::size_t i = 0; i < piece.size(); i += vocabulary_.size_of(tokens_[i]))
    ids.push_back(tokens_[i]);
  if (piece.size() > kKept) tokens_ = {}, candidates_ = {}, places_ = {};
}

void PairMerger::start(std::string_view piece) {
  tokens_.resize(piece.size());
  candidates_.clear();
  free_ = kNowhere;
  first_.resize(Gpt2Vocabulary::kTokens, kNowhere);
  used_.resize(Gpt2Vocabulary::kTokens / 64 + 1, 0);
  lowest_word_ = 0;
  for (std::size_t i = 0; i < piece.size(); ++i) tokens_[i] = vocabulary_.byte_token(piece[i]);
  for (std::size_t i = 0; i + 1 < piece.size(); ++i)
    add_candidate(static_cast<std::uint32_t>(i), vocabulary_.merge_bytes(piece[i], piece[i + 1]));
}

void PairMerger::add_candidate(std::uint32_t place, Id merged) {
  if (merged == kNoId) return;
  std::uint32_t& first = first_[merged];
  if (first == kNowhere || candidates_[first].count == Candidates::kMost) {
    first = new_candidates(first);
    used_[merged / 64] |= std::uint64_t{1} << merged % 64;
  }
  Candidates& part = candidates_[first];
  part.places[part.count++] = place;
}

std::uint32_t PairMerger::new_candidates(std::uint32_t next) {
  if (free_ == kNowhere) {
    candidates_.push_back({next, 0, {}});
    return static_cast<std::uint32_t>(candidates_.size() - 1);
  }
  const std::uint32_t part = free_;
  free_ = candidates_[part].next;
  candidates_[part].next = next;
  candidates_[part].count = 0;
  return part;
}

Id PairMerger::lowest_rank() {
  for (; lowest_word_ < used_.size(); ++lowest_word_)
    if (used_[lowest_word_] != 0)
      return static_cast<Id>(lowest_word_ * 64 +
                             static_cast<std::size_t>(std::countr_zero(used_[lowest_word_])));
  return kNoId;
}

/// Into places_, as they were added. The order matters where pairs overlap, as in "aaa": these are
/// pairs of equal tokens, which all come up while one rank is worked off, from left to right.
void PairMerger::take_candidates(Id merged) {
  places_.clear();
  for (std::uint32_t i = first_[merged], next; i != kNowhere; i = next) {
    const Candidates& part = candidates_[i];
    for (std::uint32_t k = part.count; k > 0; --k) places_.push_back(part.places[k - 1]);
    next = part.next;
    candidates_[i].next = free_;
    free_ = i;
  }
  first_[merged] = kNowhere;
  used_[merged / 64] &= ~(std::uint64_t{1} << merged % 64);
  std::reverse(places_.begin(), places_.end());
}

void PairMerger::merge_candidates(Id merged) {
  const auto size_of = [&](Id id) { return static_cast<std::uint32_t>(vocabulary_.size_of(id)); };
  const auto [left, right] = vocabulary_.halves(merged);
  const std::uint32_t left_size = size_of(left), right_size = size_of(right);
  for (const std::uint32_t place : places_) {
    const std::size_t middle = std::size_t{place} + left_size, end = middle + right_size;
    // A merge since may have taken either half; no token begins where one of its kind has been
    // taken.
    if (tokens_[place] != left || end > tokens_.size() || tokens_[middle] != right) continue;
    tokens_[middle] = kNoId;
    tokens_[place] = tokens_[end - 1] = merged;
    if (end < tokens_.size()) add_candidate(place, vocabulary_.merge(merged, tokens_[end]));
    if (place > 0) {
      const Id before = tokens_[place - 1];
      add_candidate(place - size_of(before), vocabulary_.merge(before, merged));
    }
  }
}

}  // namespace xsa::text
