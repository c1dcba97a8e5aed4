#include "xsa/base/system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temp_folder.h"

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
    EXPECT_EQ(allowed_cores(), 1);
  });
}

/// Without OpenMP's settings; afterwards they are as they were.
class DefaultThreads : public ::testing::Test {
 protected:
  DefaultThreads() {
    for (auto& [name, before] : saved_) {
      if (const char* const text = std::getenv(name)) before = text;
      ::unsetenv(name);
    }
  }
  ~DefaultThreads() override {
    for (const auto& [name, before] : saved_)
      before ? ::setenv(name, before->c_str(), 1) : ::unsetenv(name);
  }

 private:
  std::map<const char*, std::optional<std::string>> saved_ = {{"OMP_NUM_THREADS", {}},
                                                              {"OMP_THREAD_LIMIT", {}}};
};

TEST_F(DefaultThreads, AreTheAllowedCores) {
  EXPECT_EQ(default_threads(), allowed_cores());
  EXPECT_EQ(threads_or_default(0), allowed_cores());
  EXPECT_EQ(threads_or_default(7), 7);
}

TEST_F(DefaultThreads, AreThoseThatTheEnvironmentNames) {
  for (const auto& [text, threads] :
       {std::pair{"3", 3}, {" 5 ", 5}, {"4,2", 4}, {"4 , 2", 4}, {"4096", 4096}}) {
    ::setenv("OMP_NUM_THREADS", text, 1);
    EXPECT_EQ(default_threads(), threads) << text;
  }
  EXPECT_EQ(threads_or_default(7), 7);  // a setting of the command goes before
}

TEST_F(DefaultThreads, AreNoMoreThanOpenMpsLimit) {
  ::setenv("OMP_NUM_THREADS", "8", 1);
  ::setenv("OMP_THREAD_LIMIT", "5", 1);
  EXPECT_EQ(default_threads(), 5);
  ::setenv("OMP_THREAD_LIMIT", "9", 1);
  EXPECT_EQ(default_threads(), 8);
}

TEST_F(DefaultThreads, WhatOpenMpDoesNotTakeIsNoSetting) {
  for (const char* text : {"", "x", "0", "-2", "2x", "99999999999999999999"}) {
    ::setenv("OMP_NUM_THREADS", text, 1);
    EXPECT_EQ(default_threads(), allowed_cores()) << text;
  }
}

TEST_F(DefaultThreads, MoreThanAnyMachineHasIsAnError) {
  ::setenv("OMP_NUM_THREADS", "4097", 1);
  EXPECT_EQ(xsa::testing::error_of<UsageError>([] { default_threads(); }),
            "OMP_NUM_THREADS: expected at most 4096, got 4097");
}

TEST(System, TellsTimeInUtc) {
  EXPECT_THAT(utc_now(),
              ::testing::MatchesRegex(
                  "20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z"));
}

TEST(System, PeakMemoryRemembersWhatWasFreed) {
  const std::int64_t size = 64 << 20;
  const std::int64_t before = peak_rss_bytes();
  EXPECT_GT(before, 1 << 20);
  { std::vector<char> large(static_cast<std::size_t>(size), 1); }
  EXPECT_GE(peak_rss_bytes(), std::max(before, size));
}

TEST(System, KnowsItsCommit) {
  EXPECT_THAT(build_commit(), ::testing::MatchesRegex("unknown|[0-9a-f]{7,40}(-dirty)?"));
}

}  // namespace
}  // namespace xsa
