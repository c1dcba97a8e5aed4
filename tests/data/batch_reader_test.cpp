#include "xsa/data/batch_reader.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>

#include "tests/support/temp_folder.h"

namespace xsa::data {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

/// 0, 1, 2, ...; throws at `failing`.
std::function<int()> counter(int failing = -1) {
  return [failing, n = 0]() mutable {
    check(n != failing, "broken at ", n);
    return n++;
  };
}

/// Waits until `condition` holds; a test that would hang fails instead.
template <class Condition>
bool comes_true(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(ReadAhead, GivesWhatIsMadeInItsOrder) {
  for (const int depth : {0, 1, 3}) {
    ReadAhead<int> items(counter(), depth);
    for (int n = 0; n < 1000; ++n) ASSERT_EQ(items.next(), n) << "depth " << depth;
  }
}

TEST(ReadAhead, MakesItemsBeforeTheyAreAskedForButNoMoreThanItsDepth) {
  std::atomic<int> made = 0;
  ReadAhead<int> items([&] { return made++; }, 3);
  for (int taken = 0; taken < 1000; ++taken) {  // one too many would come right behind the last
    ASSERT_TRUE(comes_true([&] { return made >= taken + 3; })) << taken;
    ASSERT_EQ(made, taken + 3);
    ASSERT_EQ(items.next(), taken);
  }
}

TEST(ReadAhead, ThrowsWhatWasThrownInItsPlaceAndEverAfter) {
  for (const int depth : {0, 1, 3}) {
    ReadAhead<int> items(counter(5), depth);
    for (int n = 0; n < 5; ++n) ASSERT_EQ(items.next(), n);
    for (int time = 0; time < 3; ++time)
      EXPECT_EQ(error_of([&] { items.next(); }), "broken at 5") << "depth " << depth;
  }
}

TEST(ReadAhead, EndsAtAnyMoment) {
  for (int round = 0; round < 200; ++round) {
    ReadAhead<int> items(counter(round % 7), 1 + round % 4);
    for (int n = 0; n < round % 5 && n < round % 7; ++n) EXPECT_EQ(items.next(), n);
  }
}

TEST(ReadAhead, MeasuresHowLongItsCallerWaits) {
  ReadAhead<int> slow([] { return std::this_thread::sleep_for(20ms), 1; }, 0);
  slow.next();
  EXPECT_GE(slow.waited_s(), 0.02);
  std::atomic<int> made = 0;
  ReadAhead<int> early([&] { return made++; }, 2);
  ASSERT_TRUE(comes_true([&] { return made == 2; }));
  early.next();  // the first, which was there before the second was begun
  EXPECT_EQ(early.waited_s(), 0);
}

TEST(ReadAhead, LeavesAForkedProcessAlone) {
  auto items = std::make_unique<ReadAhead<int>>(counter(), 2);
  items->next();
  const pid_t child = ::fork();
  if (child == 0) {  // no thread reads here: neither asking nor ending may wait for one
    const std::string error = error_of([&] { items->next(); });
    items.reset();
    ::_exit(error.find("forked") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  ASSERT_TRUE(comes_true([&] { return ::waitpid(child, &status, WNOHANG) == child; }));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(items->next(), 1);
}

class BatchReaderTest : public ::testing::Test {
 protected:
  BatchReaderTest() {
    std::vector<text::Token> tokens(71);
    std::iota(tokens.begin(), tokens.end(), 0u);
    write_shard(folder_ / "a.bin", tokens);
    stream_ = std::make_unique<TokenStream>(std::vector{folder_ / "a.bin"});
  }
  TrainLoader loader() const { return {*stream_, 4, 7, 1}; }

  TempFolder folder_;
  std::unique_ptr<TokenStream> stream_;
};

TEST_F(BatchReaderTest, GivesTheLoadersBatchesAndStatesWhateverTheDepth) {
  for (const std::int64_t depth : {0, 1, 5}) {
    TrainLoader plain = loader();
    BatchReader reader(loader(), depth);
    std::vector<std::int64_t> inputs(28), targets(28), expected_inputs(28), expected_targets(28);
    for (int i = 0; i < 12; ++i) {  // over four epochs
      ASSERT_EQ(reader.state(), plain.state()) << "depth " << depth << ", batch " << i;
      reader.next(inputs, targets);
      plain.next(expected_inputs, expected_targets);
      ASSERT_EQ(inputs, expected_inputs);
      ASSERT_EQ(targets, expected_targets);
    }
    TrainLoader resumed = loader();
    resumed.restore(reader.state());
    BatchReader again(resumed, depth);
    again.next(inputs, targets);
    plain.next(expected_inputs, expected_targets);
    EXPECT_EQ(inputs, expected_inputs);
  }
}

TEST_F(BatchReaderTest, ThrowsWhereAFileTurnsOutToBeBroken) {
  resize_file(folder_ / "a.bin", 1024 + 2 * 40);
  BatchReader reader(loader(), 2);
  std::vector<std::int64_t> inputs(28), targets(28);
  EXPECT_THAT(error_of([&] {
                for (int i = 0; i < 3; ++i) reader.next(inputs, targets);
              }),
              HasSubstr("a.bin: expected"));
}

TEST_F(BatchReaderTest, RefusesRoomOfAnotherShape) {
  BatchReader reader(loader(), 1);
  std::vector<std::int64_t> inputs(27), targets(28);
  EXPECT_THAT(error_of([&] { reader.next(inputs, targets); }), HasSubstr("28 tokens, got 27"));
}

}  // namespace
}  // namespace xsa::data
