#include "xsa/base/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace xsa {

void prefer_huge_pages(const void* begin, std::size_t bytes) {
  constexpr std::uintptr_t kPage = std::uintptr_t{2} << 20;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (address + kPage - 1) / kPage * kPage;
  const std::uintptr_t last = (address + bytes) / kPage * kPage;
  if (first < last)
    (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);  // only advice
}

}  // namespace xsa
