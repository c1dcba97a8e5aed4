#include "xsa/base/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>

namespace xsa {
namespace {

/// KiB of this process that lie in huge pages.
std::int64_t huge_kib() {
  std::ifstream lines("/proc/self/smaps_rollup");
  for (std::string name, rest; lines >> name && std::getline(lines, rest);)
    if (name == "AnonHugePages:") return std::stoll(rest);
  return -1;
}

bool system_offers_them() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(file, line);
  return line.find("[always]") != line.npos || line.find("[madvise]") != line.npos;
}

/// 32 MiB that nobody has written to, all zero.
struct Fresh {
  static constexpr std::size_t kBytes = std::size_t{32} << 20;
  Fresh()
      : bytes(static_cast<char*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
              kBytes) {}
  ~Fresh() { ::munmap(bytes.data(), kBytes); }
  std::span<char> bytes;
};

TEST(HugePages, HoldWhatIsWrittenAfterwards) {
  if (!system_offers_them() || huge_kib() < 0) GTEST_SKIP() << "this system offers no huge pages";
  const Fresh memory;
  prefer_huge_pages(memory.bytes.data(), Fresh::kBytes);
  const std::int64_t before = huge_kib();
  std::fill(memory.bytes.begin(), memory.bytes.end(), 1);
  EXPECT_GT(huge_kib() - before, 16 << 10);  // all but the two ends, unless memory is short
}

TEST(HugePages, TakeAnyPlaceAndLength) {
  const Fresh memory;
  std::fill(memory.bytes.begin(), memory.bytes.end(), 7);
  prefer_huge_pages(nullptr, 0);
  prefer_huge_pages(memory.bytes.data(), 0);
  prefer_huge_pages(memory.bytes.data() + 1, 4096);
  prefer_huge_pages(memory.bytes.data() + 3, Fresh::kBytes - 7);
  EXPECT_EQ(std::count(memory.bytes.begin(), memory.bytes.end(), 7), Fresh::kBytes);
}

}  // namespace
}  // namespace xsa
