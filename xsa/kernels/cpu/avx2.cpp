// The CPU kernels for AVX2 and FMA; CMakeLists.txt has the flags.
#include "xsa/kernels/cpu/call.h"

#if defined(__AVX2__)

#include "xsa/kernels/cpu/kernels.h"

namespace xsa::kernels::cpu {

const Kernels* avx2_kernels() {
  static constexpr Kernels kKernels = kernels_named("AVX2");
  return &kKernels;
}

}  // namespace xsa::kernels::cpu

#else

namespace xsa::kernels::cpu {

const Kernels* avx2_kernels() { return nullptr; }

}  // namespace xsa::kernels::cpu

#endif
