// From a file's tensors to the model's.
#pragma once

#include <ATen/core/Tensor.h>

#include "xsa/checkpoint/safetensors.h"

namespace xsa::load {

/// A copy as fp32. Throws Error naming `file` and the tensor where its type is not a floating one
/// or a value is not finite.
at::Tensor to_float(const checkpoint::TensorData& data, const std::string& file);

}  // namespace xsa::load
