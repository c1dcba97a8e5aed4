#include "xsa/load/tensors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "xsa/base/error.h"

namespace xsa::load {
namespace {

at::ScalarType scalar_type(const checkpoint::TensorData& data, const std::string& file) {
  if (data.type == "F32") return at::kFloat;
  if (data.type == "F16") return at::kHalf;
  if (data.type == "BF16") return at::kBFloat16;
  if (data.type == "F64") return at::kDouble;
  throw Error(cat(file, ": '", data.name, "': expected F64, F32, F16 or BF16, got ", data.type));
}

}  // namespace

at::Tensor to_float(const checkpoint::TensorData& data, const std::string& file) {
  // Copied as bytes first: a file need not align its tensors.
  at::Tensor value = at::empty(data.shape, scalar_type(data, file));
  if (!data.bytes.empty())
    std::memcpy(value.mutable_data_ptr(), data.bytes.data(), data.bytes.size());
  value = value.to(at::kFloat);
  check(value.isfinite().all().item<bool>(), file, ": '", data.name,
        "' holds NaN or infinity; the file is damaged, or its training diverged");
  return value;
}

void check_no_others(const checkpoint::SafetensorsFile& file,
                     const std::vector<model::NamedTensor>& parameters, const std::string& where) {
  for (const checkpoint::TensorData& data : file.tensors())
    check(std::ranges::any_of(parameters, [&](const auto& each) { return each.name == data.name; }),
          where, ": expected the parameters of its recipe's model alone, got '", data.name,
          "' too: its recipe.json is another model's, or lacks settings that this release knows");
}

}  // namespace xsa::load
