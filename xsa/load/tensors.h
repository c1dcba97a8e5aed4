// From a file's tensors to the model's.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "xsa/checkpoint/safetensors.h"
#include "xsa/model/gpt.h"

namespace xsa::load {

/// A copy as fp32. Throws Error naming `file` and the tensor where its type is not a floating one
/// or a value is not finite.
at::Tensor to_float(const checkpoint::TensorData& data, const std::string& file);

/// Throws Error where the file has tensors that the model has no parameter for: it is another model
/// then, and its numbers would be wrong without a word.
void check_no_others(const checkpoint::SafetensorsFile& file,
                     const std::vector<model::NamedTensor>& parameters, const std::string& where);

}  // namespace xsa::load
