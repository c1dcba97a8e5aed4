// Numbers of the operators, given as tensors.
#pragma once

#include <torch/library.h>

namespace xsa::op {

/// Implements an overload that takes a tensor where its operator takes a number, `strength` or
/// `scale`. A tensor whose gradient would be lost is a ValueError that says where it belongs; with
/// any other the call goes on to the operator itself.
void implement_tensor_number(torch::Library& library, const char* overload);

}  // namespace xsa::op
