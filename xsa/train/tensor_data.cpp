#include "xsa/train/tensor_data.h"

#include <cstring>

#include "xsa/base/error.h"
#include "xsa/base/json.h"

namespace xsa::train {

checkpoint::TensorData view_of(const std::string& name, const at::Tensor& tensor) {
  const bool is_float = tensor.scalar_type() == at::kFloat;
  check(tensor.is_contiguous() && (is_float || tensor.scalar_type() == at::kByte), name,
        ": expected a contiguous fp32 or uint8 tensor");
  return {.name = name,
          .type = is_float ? "F32" : "U8",
          .shape = tensor.sizes().vec(),
          .bytes = {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

void copy_to(const checkpoint::TensorData& data, const at::Tensor& tensor) {
  const checkpoint::TensorData expected = view_of(data.name, tensor);
  check(data.type == expected.type && data.shape == expected.shape, data.name, ": expected ",
        expected.type, " ", Json(expected.shape).dump(), ", got ", data.type, " ",
        Json(data.shape).dump(), "; the checkpoint is of another model");
  std::memcpy(tensor.mutable_data_ptr(), data.bytes.data(), data.bytes.size());
}

}  // namespace xsa::train
