#include "xsa/text/pair_merger.h"

#include <gmock/gmock.h>

#include "xsa/base/rng.h"

namespace xsa::text {
namespace {

const Gpt2Vocabulary& vocabulary() {
  static const Gpt2Vocabulary it(gpt2_vocabulary_folder());
  return it;
}

/// The definition: any adjacent tokens whose bytes together are a token may merge; the lowest
/// first, then the leftmost.
std::vector<Id> merged_by_definition(std::string_view piece) {
  std::vector<Id> ids;
  for (const char byte : piece) ids.push_back(vocabulary().byte_token(byte));
  while (true) {
    Id lowest = kNoId;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const std::string both =
          std::string(vocabulary().token(ids[i])) + std::string(vocabulary().token(ids[i + 1]));
      const Id id = vocabulary().find(both);
      if (id < lowest) {
        lowest = id;
        at = i;
      }
    }
    if (lowest == kNoId) return ids;
    ids[at] = lowest;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

std::vector<Id> merged(std::string_view piece) {
  PairMerger merger(vocabulary());
  std::vector<Id> ids;
  merger.merge(piece, ids);
  return ids;
}

TEST(PairMerger, AgreesWithTheDefinitionForPiecesOfEveryLength) {
  Rng rng(9);
  for (int round = 0; round < 400; ++round) {
    // Few different bytes make many merges, equal ones pairs that overlap.
    const std::size_t kinds = 1 + rng.below(6);
    std::string piece;
    for (const std::size_t size = 1 + rng.below(300); piece.size() < size;)
      piece += static_cast<char>("aethn rsi0-"[rng.below(kinds)]);
    ASSERT_EQ(merged(piece), merged_by_definition(piece)) << piece;
  }
}

TEST(PairMerger, AgreesWithTheDefinitionForRunsOfTokens) {
  Rng rng(10);
  for (int round = 0; round < 200; ++round) {
    std::string piece;
    for (const std::size_t size = 1 + rng.below(250); piece.size() < size;)
      piece += vocabulary().token(static_cast<Id>(rng.below(Gpt2Vocabulary::kTokens)));
    ASSERT_EQ(merged(piece), merged_by_definition(piece)) << "round " << round;
  }
}

TEST(PairMerger, MakesEveryTokenOfItsBytes) {
  PairMerger merger(vocabulary());
  std::vector<Id> ids;
  for (Id id = 0; id < Gpt2Vocabulary::kTokens; ++id) {
    ids.clear();
    merger.merge(vocabulary().token(id), ids);
    ASSERT_THAT(ids, ::testing::ElementsAre(id));
  }
}

TEST(PairMerger, CanBeUsedAgain) {
  PairMerger merger(vocabulary());
  for (const std::string& piece : {std::string(500, 'a'), std::string(300, '-'), std::string("the"),
                                   std::string(700, 'a') + std::string(200, 'b')}) {
    std::vector<Id> ids;
    merger.merge(piece, ids);
    EXPECT_EQ(ids, merged_by_definition(piece));
  }
}

}  // namespace
}  // namespace xsa::text
