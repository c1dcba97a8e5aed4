#include "xsa/base/parallel.h"

#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "tests/support/temp_folder.h"

namespace xsa {
namespace {

using ::testing::HasSubstr;
using xsa::testing::error_of;

TEST(Serial, RunsEveryIndexInOrderOnWorkerZero) {
  std::vector<std::int64_t> indices;
  serial().run(5, [&](std::int64_t index, std::int64_t worker) {
    indices.push_back(index);
    EXPECT_EQ(worker, 0);
  });
  EXPECT_THAT(indices, ::testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST(Threads, RunEveryIndexOnceAndNoWorkerTwiceAtATime) {
  for (const std::int64_t workers : {1, 2, 3, 8}) {
    const Parallel team = threads(workers);
    EXPECT_EQ(team.workers, workers);
    for (const std::int64_t count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
      std::vector<std::atomic<int>> busy(static_cast<std::size_t>(workers));
      team.run(count, [&](std::int64_t index, std::int64_t worker) {
        EXPECT_EQ(busy.at(static_cast<std::size_t>(worker))++, 0);
        ++runs.at(static_cast<std::size_t>(index));
        --busy[static_cast<std::size_t>(worker)];
      });
      for (const auto& times : runs) EXPECT_EQ(times, 1);
    }
  }
}

TEST(Threads, WorkAtTheSameTime) {
  std::mutex mutex;
  std::condition_variable changed;
  int present = 0;
  threads(3).run(3, [&](std::int64_t, std::int64_t) {  // ends only when all three are here
    std::unique_lock lock(mutex);
    ++present;
    changed.notify_all();
    changed.wait(lock, [&] { return present == 3; });
  });
  EXPECT_EQ(present, 3);
}

TEST(Threads, RethrowATasksErrorAndStartNoFurtherTask) {
  for (const Parallel& team : {serial(), threads(3)}) {
    std::atomic<int> started = 0;
    const auto run = [&] {
      team.run(100'000, [&](std::int64_t index, std::int64_t) {
        ++started;
        check(index != 10, "task ", index, " failed");
      });
    };
    EXPECT_THAT(error_of(run), HasSubstr("task 10 failed"));
    EXPECT_LT(started, 100'000);
  }
}

TEST(Threads, NeedAWorker) {
  EXPECT_THAT(error_of([] { threads(0); }), HasSubstr("at least 1 worker, got 0"));
}

}  // namespace
}  // namespace xsa
