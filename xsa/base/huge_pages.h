// Large pages for memory that is read from end to end over and over, such as weights in generation:
// with pages of 4 KiB, looking addresses up costs a third of such a read.
#pragma once

#include <cstddef>

namespace xsa {

/// Asks the system for pages of 2 MiB, where they fit within [begin, begin + bytes). To be called
/// before the memory is written for the first time: that is when pages are given. Where the system
/// does not offer them nothing happens: it is about speed alone.
void prefer_huge_pages(const void* begin, std::size_t bytes);

}  // namespace xsa
