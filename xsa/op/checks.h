// The operator's door: every call is checked here, once, and trusted behind it. Errors are
// c10::ValueError (Python: ValueError) that say what was expected, what came and what to do.
#pragma once

#include "xsa/op/signature.h"

namespace xsa::op {

/// Shapes, types, devices and plain numbers; never the data. Also right for symbolic shapes.
void check_call(const Inputs& inputs, const AttentionOptions& options);
/// As above, and that gradients and saved outputs belong to the call.
void check_call(const BackwardInputs& inputs, const AttentionOptions& options);
/// What is in cu_seqlens, key_start and key_end. Reads CPU tensors only: elsewhere it would stall
/// the device.
void check_index_values(const Inputs& inputs, const AttentionOptions& options);

}  // namespace xsa::op
