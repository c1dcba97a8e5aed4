// Byte pair encoding of one piece: beginning with its bytes, the adjacent pair whose merged token
// has the lowest id is merged, the leftmost first among equals, until no pair makes a token.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "xsa/text/gpt2_vocabulary.h"

namespace xsa::text {

/// Working memory of one thread at a time.
class PairMerger {
 public:
  explicit PairMerger(const Gpt2Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  /// Appends the ids of `piece`. Time O(n log n), for a short one O(n^2) with a small factor;
  /// memory some ten bytes a byte.
  void merge(std::string_view piece, std::vector<Id>& ids);

 private:
  /// Places where a pair begins that makes the same token, a part of them.
  struct Candidates {
    static constexpr std::uint32_t kMost = 14;
    std::uint32_t next, count;  // next: of the same rank, added before
    std::array<std::uint32_t, kMost> places;
  };

  void merge_short(std::string_view piece, std::vector<Id>& ids);
  void merge_long(std::string_view piece, std::vector<Id>& ids);
  void start(std::string_view piece);
  void add_candidate(std::uint32_t place, Id merged);
  std::uint32_t new_candidates(std::uint32_t next);
  Id lowest_rank();
  void take_candidates(Id merged);
  void merge_candidates(Id merged);

  const Gpt2Vocabulary& vocabulary_;
  // Of merge_long. Merging two tokens makes a token with a higher id than either, so what a merge
  // adds always has a higher rank than the merge: ranks are worked off upwards, a list for each.
  std::vector<Id> tokens_;  // by place: the token that begins there, or ends there
  std::vector<Candidates> candidates_;
  std::uint32_t free_ = 0;            // of candidates_: a list
  std::vector<std::uint32_t> first_;  // by rank: the list's newest part
  std::vector<std::uint64_t> used_;   // a bit for each rank that has candidates
  std::size_t lowest_word_ = 0;
  std::vector<std::uint32_t> places_;
};

}  // namespace xsa::text
