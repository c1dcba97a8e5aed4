// Large pages for memory that is read from end to end over and over, such as weights in generation:
// with pages of 4 KiB, looking addresses up costs a third of such a read.
#pragma once

#include <cstddef>

namespace xsa {

/// Asks the system to keep the whole 2 MiB pages within [begin, begin + bytes) as such, and to
/// gather those that are already filled. Contents stay. Where the system does not offer it, or the
/// memory is not its own (a mapped file), nothing happens: it is about speed alone.
void prefer_huge_pages(const void* begin, std::size_t bytes);

}  // namespace xsa
