// The CPU kernels for AVX-512 (Highway's AVX3); CMakeLists.txt has the flags.
#include "xsa/kernels/cpu/call.h"

#if defined(__AVX512F__)

#include "xsa/kernels/cpu/kernels.h"

namespace xsa::kernels::cpu {

const Kernels* avx3_kernels() {
  static constexpr Kernels kKernels = kernels_named("AVX3");
  return &kKernels;
}

}  // namespace xsa::kernels::cpu

#else

namespace xsa::kernels::cpu {

const Kernels* avx3_kernels() { return nullptr; }

}  // namespace xsa::kernels::cpu

#endif
