// The CPU kernels for what every machine of the architecture has; CMakeLists.txt has the flags.
#include "xsa/kernels/cpu/call.h"

#include "xsa/kernels/cpu/kernels.h"

namespace xsa::kernels::cpu {

const Kernels* baseline_kernels() {
  static constexpr Kernels kKernels =
      kernels_named(HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR ? "SCALAR" : "BASELINE");
  return &kKernels;
}

}  // namespace xsa::kernels::cpu
