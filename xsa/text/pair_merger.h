// Byte pair encoding of one piece: beginning with its bytes, the adjacent pair whose merged token
// has the lowest id is merged, the leftmost first among equals, until no pair makes a token.
#pragma once

#include <string_view>
#include <vector>

#include "xsa/text/gpt2_vocabulary.h"

namespace xsa::text {

/// Working memory of one thread at a time.
class PairMerger {
 public:
  explicit PairMerger(const Gpt2Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  /// Appends the ids of `piece`. Time O(n log n), for a short one O(n^2) with a small factor;
  /// memory some 40 bytes a byte.
  void merge(std::string_view piece, std::vector<Id>& ids);

 private:
  /// A place where the pair that begins there could be merged; of one rank, in a list.
  struct Candidate {
    std::uint32_t place, next;
  };

  void merge_short(std::string_view piece, std::vector<Id>& ids);
  void merge_long(std::string_view piece, std::vector<Id>& ids);
  void add_candidate(std::uint32_t place, Id merged);
  Id lowest_rank();
  void take_candidates(Id merged);
  void merge_candidates(Id merged);

  const Gpt2Vocabulary& vocabulary_;
  // Of merge_long. Merging two tokens makes a token with a higher id than either, so what a merge
  // adds always has a higher rank than the merge: ranks are worked off upwards, a list for each.
  std::vector<Id> tokens_;                    // by place; kNoId where merged into one on its left
  std::vector<std::uint32_t> next_, before_;  // place of the neighbours, kNowhere at the ends
  std::vector<Candidate> candidates_;
  std::vector<std::uint32_t> first_;  // by rank: the list's newest candidate
  std::vector<std::uint64_t> used_;   // a bit for each rank that has candidates
  std::size_t lowest_word_ = 0;
  std::vector<std::uint32_t> places_;
};

}  // namespace xsa::text
