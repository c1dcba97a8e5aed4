#include "xsa/base/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

namespace xsa {
namespace {

/// KiB of this process that lie in huge pages.
std::int64_t huge_kib() {
  std::ifstream lines("/proc/self/smaps_rollup");
  for (std::string name, rest; lines >> name && std::getline(lines, rest);)
    if (name == "AnonHugePages:") return std::stoll(rest);
  return -1;
}

bool can_gather() {
  const std::size_t bytes = std::size_t{4} << 20;
  std::vector<char> some(bytes, 1);
  const auto address = reinterpret_cast<std::uintptr_t>(some.data());
  const std::uintptr_t page = (address + (bytes / 2) - 1) / (bytes / 2) * (bytes / 2);
  return huge_kib() >= 0 && ::madvise(reinterpret_cast<void*>(page), bytes / 2, 25) == 0;
}

TEST(HugePages, KeepContentsAtAnyPlaceAndLength) {
  std::vector<std::uint32_t> memory(std::size_t{3} << 20);  // 12 MiB
  std::iota(memory.begin(), memory.end(), 0U);
  const std::vector<std::uint32_t> before = memory;
  prefer_huge_pages(nullptr, 0);
  prefer_huge_pages(memory.data(), 0);
  prefer_huge_pages(memory.data() + 1, 4096);
  prefer_huge_pages(memory.data() + 3, (memory.size() - 7) * sizeof(std::uint32_t));
  EXPECT_EQ(memory, before);
}

TEST(HugePages, HoldWhatIsAlreadyFilled) {
  if (!can_gather()) GTEST_SKIP() << "this system does not gather pages";
  std::vector<std::uint32_t> memory(std::size_t{8} << 20, 1);  // 32 MiB
  const std::int64_t before = huge_kib();
  prefer_huge_pages(memory.data(), memory.size() * sizeof(std::uint32_t));
  EXPECT_GE(huge_kib() - before, 28 << 10);  // all but the two ends
}

}  // namespace
}  // namespace xsa
