// How many of ATen's threads run.
#pragma once

#include <cstdint>

namespace xsa::op {

/// Has ATen, MKL, oneDNN and the operators work in `wanted` threads; 0: in default_threads()
/// (xsa/base/system.h). Returns how many run, fewer where OpenMP gives fewer (OMP_THREAD_LIMIT,
/// OMP_DYNAMIC).
std::int64_t use_threads(std::int64_t wanted);

}  // namespace xsa::op
