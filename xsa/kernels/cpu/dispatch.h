// Which instruction set the CPU kernels use: the best that this machine has, unless told otherwise.
#pragma once

#include "xsa/kernels/cpu/call.h"

namespace xsa::kernels::cpu {

const Kernels& chosen_kernels();

}  // namespace xsa::kernels::cpu
