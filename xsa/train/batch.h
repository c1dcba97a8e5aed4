// One batch's memory, filled by the loaders and read by the model.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <span>

namespace xsa::train {

struct Batch {
  Batch(std::int64_t rows, std::int64_t context)
      : inputs(at::empty({rows, context}, at::kLong)), targets(at::empty_like(inputs)) {}

  std::span<std::int64_t> input_span() const { return span_of(inputs); }
  std::span<std::int64_t> target_span() const { return span_of(targets); }

  at::Tensor inputs, targets;  // [B, T] int64

 private:
  static std::span<std::int64_t> span_of(const at::Tensor& tensor) {
    return {tensor.mutable_data_ptr<std::int64_t>(), static_cast<std::size_t>(tensor.numel())};
  }
};

}  // namespace xsa::train
