// Between ATen's tensors and the checkpoint's TensorData, which knows no Torch.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "xsa/checkpoint/safetensors.h"

namespace xsa::train {

/// The memory of a contiguous CPU tensor (fp32 or uint8), which must outlive the result.
checkpoint::TensorData view_of(const std::string& name, const at::Tensor& tensor);

/// Overwrites a tensor's elements. Throws Error naming the tensor if type or shape differ.
void copy_to(const checkpoint::TensorData& data, const at::Tensor& tensor);

}  // namespace xsa::train
