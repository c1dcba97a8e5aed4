// How many bytes live in CPU tensors, now and at most. ATen counts none itself: from the first call
// on, its CPU allocator is wrapped by one that counts. Exact: the sizes asked for, without the
// allocator's rounding. Not counted: the heap outside tensors, files mapped into memory.
#pragma once

#include <cstdint>

namespace xsa::model {

/// In tensors that were allocated since the first call of one of these functions.
std::int64_t tensor_bytes();
/// The largest tensor_bytes() since the last reset.
std::int64_t peak_tensor_bytes();
/// Lets the peak begin again at tensor_bytes().
void reset_peak_tensor_bytes();

}  // namespace xsa::model
