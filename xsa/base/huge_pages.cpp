#include "xsa/base/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace xsa {
namespace {

constexpr std::uintptr_t kPage = std::uintptr_t{2} << 20;
constexpr int kCollapse = 25;  // MADV_COLLAPSE of Linux 6.1, which older headers lack

}  // namespace

void prefer_huge_pages(const void* begin, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (address + kPage - 1) / kPage * kPage;
  const std::uintptr_t last = (address + bytes) / kPage * kPage;
  if (first >= last) return;
  void* const start = reinterpret_cast<void*>(first);
  // Advice: a refusal changes nothing. What cannot be gathered now, the system gathers in time.
  (void)::madvise(start, last - first, MADV_HUGEPAGE);
  (void)::madvise(start, last - first, kCollapse);
}

}  // namespace xsa
