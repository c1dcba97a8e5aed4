#include "xsa/base/system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>
#include <vector>

namespace xsa {
namespace {

TEST(System, DescribesThisMachine) {
  const Json info = machine_info();
  for (const char* text : {"cpu", "os", "compiler"}) {
    EXPECT_FALSE(info.at(text).get<std::string>().empty()) << text;
  }
  EXPECT_GE(info.at("cores").get<int>(), 1);
  EXPECT_LE(info.at("cores").get<unsigned>(), std::thread::hardware_concurrency());
  EXPECT_GT(info.at("memory_bytes").get<std::int64_t>(), 1 << 26);
  EXPECT_TRUE(info.at("instruction_sets").is_array());
}

TEST(System, CountsOnlyTheCoresThatAffinityAllows) {
  std::jthread([] {  // affinity is a thread's own
    cpu_set_t allowed, one;
    ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
    CPU_ZERO(&one);
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    CPU_SET(first, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(machine_info().at("cores").get<int>(), 1);
  });
}

TEST(System, TellsTimeInUtc) {
  EXPECT_THAT(
      utc_now(),
      testing::MatchesRegex("20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z"));
}

TEST(System, PeakMemoryRemembersWhatWasFreed) {
  const std::int64_t size = 64 << 20;
  const std::int64_t before = peak_rss_bytes();
  EXPECT_GT(before, 1 << 20);
  { std::vector<char> large(static_cast<std::size_t>(size), 1); }
  EXPECT_GE(peak_rss_bytes(), std::max(before, size));
}

TEST(System, KnowsItsCommit) {
  EXPECT_THAT(build_commit(), testing::MatchesRegex("unknown|[0-9a-f]{7,40}(-dirty)?"));
}

}  // namespace
}  // namespace xsa
