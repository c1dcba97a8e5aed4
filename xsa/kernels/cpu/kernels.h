// The table of one instruction set's kernels.
#pragma once

#include "xsa/kernels/cpu/backward.h"
#include "xsa/kernels/cpu/decode.h"
#include "xsa/kernels/cpu/exclude.h"
#include "xsa/kernels/cpu/forward.h"
#include "xsa/kernels/cpu/layer_norm.h"
#include "xsa/kernels/cpu/linear.h"
#include "xsa/kernels/cpu/rope.h"

namespace xsa::kernels::cpu {
namespace {

constexpr Kernels kernels_named(const char* name) {
  return {name,
          {kLanes, kPanelVectors},
          forward_floats,
          backward_floats,
          forward_task,
          backward_task,
          decode_floats,
          decode_split,
          decode_merge,
          rotary_tokens,
          add_layer_norm_rows,
          add_layer_norm_gradients,
          exclude_kernels(),
          linear_outputs};
}

}  // namespace
}  // namespace xsa::kernels::cpu
