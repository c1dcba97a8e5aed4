#include "xsa/data/loader.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "tests/support/temp_folder.h"
#include "xsa/base/rng.h"

namespace xsa::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

/// Tokens 0, 1, 2, ...: a token says its place.
class Counting {
 public:
  explicit Counting(std::size_t count) {
    std::vector<text::Token> tokens(count);
    std::iota(tokens.begin(), tokens.end(), 0u);
    write_shard(folder_ / "a.bin", tokens);
    stream_ = std::make_unique<TokenStream>(std::vector{folder_ / "a.bin"});
  }
  const TokenStream& operator*() const { return *stream_; }

 private:
  TempFolder folder_;
  std::unique_ptr<TokenStream> stream_;
};

struct Batch {
  std::vector<std::int64_t> inputs, targets;
  bool operator==(const Batch&) const = default;
};

Batch next(TrainLoader& loader, std::size_t tokens) {
  Batch batch{std::vector<std::int64_t>(tokens, -1), std::vector<std::int64_t>(tokens, -1)};
  loader.next(batch.inputs, batch.targets);
  return batch;
}

TEST(TrainLoader, GivesTargetsOneTokenAfterTheirInputs) {
  const Counting stream(100);
  TrainLoader loader(*stream, 3, 7, 1);
  for (int i = 0; i < 20; ++i) {
    const Batch batch = next(loader, 21);
    for (std::size_t row = 0; row < 21; row += 7)
      for (std::size_t t = 0; t < 7; ++t) {
        ASSERT_EQ(batch.inputs[row + t], batch.inputs[row] + static_cast<std::int64_t>(t));
        ASSERT_EQ(batch.targets[row + t], batch.inputs[row + t] + 1);
      }
  }
}

TEST(TrainLoader, PredictsEveryTokenOnceAnEpochThoughBatchesRunOnIntoTheNext) {
  const Counting stream(71);  // 10 rows of 7: batches of 4 end within epochs
  TrainLoader loader(*stream, 4, 7, 1);
  ASSERT_EQ(loader.rows_per_epoch(), 10);
  std::vector<std::int64_t> targets;
  for (int i = 0; i < 5; ++i) {  // two epochs
    const Batch batch = next(loader, 28);
    targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
  }
  std::vector<std::int64_t> every(70);
  std::iota(every.begin(), every.end(), 1);
  const auto middle = targets.begin() + 70;
  EXPECT_FALSE(std::equal(targets.begin(), middle, middle));
  std::sort(targets.begin(), middle);
  std::sort(middle, targets.end());
  EXPECT_TRUE(std::equal(targets.begin(), middle, every.begin()));
  EXPECT_TRUE(std::equal(middle, targets.end(), every.begin()));
}

TEST(TrainLoader, LeavesOutOnlyTheTokensAfterTheLastWholeRow) {
  EXPECT_EQ(TrainLoader(*Counting(71), 1, 7, 1).rows_per_epoch(), 10);
  EXPECT_EQ(TrainLoader(*Counting(77), 1, 7, 1).rows_per_epoch(), 10);
  EXPECT_EQ(TrainLoader(*Counting(78), 1, 7, 1).rows_per_epoch(), 11);
}

TEST(TrainLoader, RepeatsItselfForASeedAndDiffersForAnother) {
  const Counting stream(1000);
  TrainLoader a(*stream, 5, 9, 1), b(*stream, 5, 9, 1), other(*stream, 5, 9, 2);
  bool all_equal = true;
  for (int i = 0; i < 60; ++i) {
    const Batch batch = next(a, 45);
    ASSERT_EQ(batch, next(b, 45));
    all_equal &= batch == next(other, 45);
  }
  EXPECT_FALSE(all_equal);
}

TEST(TrainLoader, KeepsItsOrderFromVersionToVersion) {
  const Counting stream(11);
  TrainLoader loader(*stream, 10, 1, 1337);
  EXPECT_THAT(next(loader, 10).inputs, ElementsAre(4, 2, 8, 3, 1, 7, 5, 0, 9, 6));
  EXPECT_THAT(next(loader, 10).inputs, ElementsAre(2, 3, 1, 0, 6, 5, 8, 7, 4, 9));
}

TEST(TrainLoader, ContinuesExactlyFromEveryBatchOfTwoEpochs) {
  const Counting stream(71);
  TrainLoader unbroken(*stream, 4, 7, 1);
  std::vector<Json> states{unbroken.state()};
  std::vector<Batch> batches;
  for (int i = 0; i < 10; ++i) {
    batches.push_back(next(unbroken, 28));
    states.push_back(Json::parse(unbroken.state().dump()));
  }
  for (std::size_t start = 0; start < batches.size(); ++start) {
    TrainLoader resumed(*stream, 4, 7, 1);
    next(resumed, 28);  // wherever it stood before
    resumed.restore(states[start]);
    for (std::size_t i = start; i < batches.size(); ++i)
      ASSERT_EQ(next(resumed, 28), batches[i]) << "batch " << i << " resumed at " << start;
    EXPECT_EQ(resumed.state(), states.back());
  }
}

/// The rows (by their first token) of the next batch of each of `ranks` loaders, joined.
std::vector<std::int64_t> rows_of(std::vector<TrainLoader>& ranks) {
  std::vector<std::int64_t> rows;
  for (TrainLoader& loader : ranks) {
    const Batch batch = next(loader, static_cast<std::size_t>(loader.batch_tokens()));
    for (std::size_t at = 0; at < batch.inputs.size(); at += 7)
      rows.push_back(batch.inputs[at] / 7);
  }
  return rows;
}

std::vector<TrainLoader> ranks_of(const TokenStream& stream, std::int64_t batch_size,
                                  std::int64_t ranks) {
  std::vector<TrainLoader> loaders;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    loaders.emplace_back(stream, batch_size, 7, 1, Rank{rank, ranks});
  return loaders;
}

TEST(TrainLoader, SharesItsRowsAmongRanksWithoutChangingTheirOrder) {
  const Counting stream(7 * 50 + 3);
  std::vector<TrainLoader> alone = ranks_of(*stream, 12, 1);
  for (const auto& [batch_size, ranks] : {std::pair{6, 2}, {4, 3}, {2, 6}, {1, 12}}) {
    alone = ranks_of(*stream, 12, 1);
    std::vector<TrainLoader> shared = ranks_of(*stream, batch_size, ranks);
    for (int i = 0; i < 13; ++i)  // over three borders of epochs
      ASSERT_EQ(rows_of(shared), rows_of(alone)) << ranks << " ranks, batch " << i;
    for (const TrainLoader& loader : shared) EXPECT_EQ(loader.state(), alone[0].state());
  }
}

// Random sizes, shards, ranks, stops and new splits: every token is predicted once an epoch.
TEST(TrainLoader, PredictsEveryTokenOnceAnEpochHoweverItIsSplitAndStopped) {
  Rng rng(21);
  for (int round = 0; round < 60; ++round) {
    const TempFolder folder;
    const auto context = static_cast<std::int64_t>(1 + rng.below(9));
    std::vector<std::filesystem::path> paths;
    text::Token token = 0;
    for (std::uint64_t shard = 0; shard < 1 + rng.below(5) || token < 200; ++shard) {
      std::vector<text::Token> tokens(rng.below(150));
      std::iota(tokens.begin(), tokens.end(), token);
      token += static_cast<text::Token>(tokens.size());
      paths.push_back(folder / cat(shard));
      write_shard(paths.back(), tokens);
    }
    const TokenStream stream(paths);
    const std::int64_t rows = (stream.size() - 1) / context;
    std::vector<std::int64_t> times(static_cast<std::size_t>(rows * context), 0);
    std::int64_t taken = 0;
    Json state = TrainLoader(stream, 1, context, 5).state();
    while (taken < 3 * rows) {
      const auto ranks = static_cast<std::int64_t>(1 + rng.below(4));
      const auto batch_size = static_cast<std::int64_t>(1 + rng.below(6));
      Json after;
      const std::uint64_t batches = 1 + rng.below(5);
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        TrainLoader loader(stream, batch_size, context, 5, {rank, ranks});
        loader.restore(state);
        for (std::uint64_t i = 0; i < batches; ++i)
          for (const std::int64_t target :
               next(loader, static_cast<std::size_t>(batch_size * context)).targets)
            ++times[static_cast<std::size_t>(target - 1)];
        if (rank == 0) after = loader.state();
        ASSERT_EQ(loader.state(), after);
      }
      state = Json::parse(after.dump());
      taken += static_cast<std::int64_t>(batches) * ranks * batch_size;
      ASSERT_EQ(state["epoch"], taken / rows);
      ASSERT_EQ(state["position"], taken % rows);
      for (const std::int64_t count : times) {
        ASSERT_GE(count, taken / rows) << "round " << round;
        ASSERT_LE(count, taken / rows + 1) << "round " << round;
      }
    }
  }
}

TEST(TrainLoader, TakesThePositionOfARunWithoutRanks) {  // as earlier versions saved it
  const Counting stream(71);
  TrainLoader loader(*stream, 4, 7, 1), fresh(*stream, 4, 7, 1);
  Json state = loader.state();
  state["batch_size"] = 4;
  state["position"] = 10;  // the first epoch's end
  loader.restore(state);
  EXPECT_EQ(loader.state()["epoch"], 1);
  next(fresh, 28);
  next(fresh, 28);
  const Batch third = next(fresh, 28);  // two rows of the first epoch, two of the second
  const Batch first = next(loader, 28);
  EXPECT_TRUE(
      std::equal(first.inputs.begin(), first.inputs.begin() + 14, third.inputs.begin() + 14));
}

TEST(TrainLoader, RefusesRanksThatAreNone) {
  const Counting stream(100);
  EXPECT_THAT(error_of<UsageError>([&] { TrainLoader(*stream, 1, 7, 1, {2, 2}); }),
              HasSubstr("got rank 2 of 2"));
  EXPECT_NE(error_of<UsageError>([&] { TrainLoader(*stream, 1, 7, 1, {-1, 2}); }), "");
  EXPECT_NE(error_of<UsageError>([&] { TrainLoader(*stream, 1, 7, 1, {0, 0}); }), "");
  EXPECT_THAT(error_of<UsageError>([&] { TrainLoader(*stream, 5, 7, 1, {0, 3}); }),
              HasSubstr("one batch of 15 rows"));
}

TEST(TrainLoader, RefusesTheStateOfAnotherStreamSeedOrContext) {
  const Counting stream(100), longer(101);
  const Json state = TrainLoader(*stream, 4, 7, 1).state();
  const auto error = [&](TrainLoader loader) { return error_of([&] { loader.restore(state); }); };
  EXPECT_EQ(error(TrainLoader(*stream, 4, 7, 1)), "");
  EXPECT_THAT(error(TrainLoader(*longer, 4, 7, 1)),
              HasSubstr("stream_tokens 100, but this run has 101"));
  EXPECT_THAT(error(TrainLoader(*stream, 4, 8, 1)), HasSubstr("context 7, but this run has 8"));
  EXPECT_THAT(error(TrainLoader(*stream, 4, 7, 2)), HasSubstr("seed 1, but this run has 2"));
}

TEST(TrainLoader, RefusesADamagedStateAndStaysWhereItWas) {
  const Counting stream(100);
  TrainLoader loader(*stream, 4, 7, 1);
  next(loader, 28);
  const Json before = loader.state();
  const auto error_with = [&](const char* name, const Json& value) {
    Json state = before;
    state[name] = value;
    return error_of([&] { loader.restore(state); });
  };
  EXPECT_THAT(error_with("epoch", -1), HasSubstr("got -1"));
  EXPECT_THAT(error_with("position", 15), HasSubstr("in [0, 14], got 15"));
  EXPECT_THAT(error_with("position", -1), HasSubstr("got -1"));
  EXPECT_THAT(error_with("position", "3"), HasSubstr("'position', got \"3\""));
  EXPECT_THAT(error_of([&] { loader.restore(Json::object()); }), HasSubstr("got nothing"));
  EXPECT_THAT(error_of([&] { loader.restore(Json::array()); }), HasSubstr("an object"));
  EXPECT_EQ(loader.state(), before);
}

TEST(TrainLoader, NeedsOneBatchOfRows) {
  EXPECT_EQ(TrainLoader(*Counting(29), 4, 7, 1).rows_per_epoch(), 4);
  EXPECT_THAT(error_of<UsageError>([] { TrainLoader(*Counting(28), 4, 7, 1); }),
              AllOf(HasSubstr("at least 29 tokens"), HasSubstr("got 28")));
  EXPECT_NE(error_of<UsageError>([] { TrainLoader(TokenStream({}), 1, 1, 1); }), "");
  EXPECT_NE(error_of<UsageError>([] { TrainLoader(*Counting(28), 0, 7, 1); }), "");
  EXPECT_NE(error_of<UsageError>([] { TrainLoader(*Counting(28), 4, 0, 1); }), "");
}

TEST(TrainLoader, RefusesRoomOfAnotherShape) {
  const Counting stream(100);
  TrainLoader loader(*stream, 4, 7, 1);
  EXPECT_THAT(error_of([&] { next(loader, 27); }), HasSubstr("4 rows of 7 tokens, got 27"));
}

/// All targets, and the number of rows of each call.
std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> drain(SequentialLoader loader,
                                                                      std::size_t context,
                                                                      std::size_t batch_size) {
  std::vector<std::int64_t> targets, counts, inputs(context * batch_size), room(inputs.size());
  while (const std::int64_t count = loader.next(inputs, room)) {
    const auto used = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(count) * context);
    for (std::ptrdiff_t i = 0; i < used; ++i)
      EXPECT_EQ(inputs[static_cast<std::size_t>(i)] + 1, room[static_cast<std::size_t>(i)]);
    targets.insert(targets.end(), room.begin(), room.begin() + used);
    counts.push_back(count);
  }
  return {targets, counts};
}

TEST(SequentialLoader, GivesRowsInTheirOrderAndASmallerLastBatch) {
  const Counting stream(71);
  SequentialLoader loader(*stream, 4, 7, 0);
  EXPECT_EQ(loader.rows(), 10);
  const auto [targets, counts] = drain(loader, 7, 4);
  std::vector<std::int64_t> every(70);
  std::iota(every.begin(), every.end(), 1);
  EXPECT_EQ(targets, every);
  EXPECT_THAT(counts, ElementsAre(4, 4, 2));
}

TEST(SequentialLoader, SpreadsMaxRowsEvenlyOverTheStream) {
  const Counting stream(71);  // rows begin at 0, 7, ..., 63
  const auto [targets, counts] = drain(SequentialLoader(*stream, 2, 7, 3), 7, 2);
  EXPECT_THAT(counts, ElementsAre(2, 1));
  EXPECT_EQ(targets[0], 0 * 7 + 1);
  EXPECT_EQ(targets[7], 3 * 7 + 1);
  EXPECT_EQ(targets[14], 6 * 7 + 1);
  EXPECT_EQ(SequentialLoader(*stream, 4, 7, 99).rows(), 10);
}

TEST(SequentialLoader, NeedsOneRow) {
  EXPECT_THAT(error_of<UsageError>([] { SequentialLoader(*Counting(7), 4, 7, 0); }),
              AllOf(HasSubstr("at least 8 tokens"), HasSubstr("got 7")));
  EXPECT_EQ(SequentialLoader(*Counting(8), 4, 7, 0).rows(), 1);
}

TEST(DocumentBorders, AreTheRowsAndTheEndOfTextTokens) {
  constexpr std::int64_t kEnd = 9;
  const std::vector<std::int64_t> inputs = {1, kEnd, 2, kEnd, kEnd, 3, 4, 5};
  EXPECT_THAT(document_borders(inputs, 4, kEnd), ElementsAre(0, 1, 3, 4, 8));
  EXPECT_THAT(document_borders(inputs, 2, kEnd), ElementsAre(0, 1, 2, 3, 4, 6, 8));
  EXPECT_THAT(document_borders(inputs, 8, 7), ElementsAre(0, 8));
}

}  // namespace
}  // namespace xsa::data
