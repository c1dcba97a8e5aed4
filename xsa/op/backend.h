// Which path computes a call on the CPU: the fused kernel where it can, else composite ATen.
#pragma once

#include <string>

#include "xsa/op/signature.h"

namespace xsa::op {

/// "auto" (the default), "composite" or "cpu_fused", for the whole process: tests and comparisons
/// force a path with it. A call that a forced "cpu_fused" cannot take is an error. Throws
/// c10::ValueError for another name.
void set_backend(const std::string& name);
std::string backend();

/// Empty where the fused kernel takes the call, else why not. Throws c10::NotImplementedError where
/// the kernel is forced and cannot.
std::string why_not_fused(const Inputs& inputs, const AttentionOptions& options);

/// "cpu_fused" or "composite: <why>".
std::string backend_of(const Inputs& inputs, const AttentionOptions& options);

/// Whether an operator with one kernel, for CPU tensors that are not float64, uses it for x. Throws
/// where set_backend('cpu_fused') is in force and x is float64.
bool takes_kernel(const char* op, const at::Tensor& x);

}  // namespace xsa::op
