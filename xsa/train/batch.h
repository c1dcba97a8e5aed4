// One batch's memory, filled by the loaders and read by the model.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <cstdint>
#include <optional>
#include <span>

#include "xsa/data/loader.h"

namespace xsa::train {

struct Batch {
  Batch(std::int64_t rows, std::int64_t context)
      : inputs(at::empty({rows, context}, at::kLong)), targets(at::empty_like(inputs)) {}

  std::span<std::int64_t> input_span() const { return span_of(inputs); }
  std::span<std::int64_t> target_span() const { return span_of(targets); }

  /// cu_seqlens of the first `rows` rows, for Gpt::hidden; undefined without an opener: each row is
  /// then seen whole.
  at::Tensor documents(std::int64_t rows, std::optional<text::Token> opener) const {
    if (!opener) return {};
    return at::tensor(
        data::document_borders(input_span().first(static_cast<std::size_t>(rows * inputs.size(1))),
                               inputs.size(1), *opener),
        at::kInt);
  }

  at::Tensor inputs, targets;  // [B, T] int64

 private:
  static std::span<std::int64_t> span_of(const at::Tensor& tensor) {
    return {tensor.mutable_data_ptr<std::int64_t>(), static_cast<std::size_t>(tensor.numel())};
  }
};

}  // namespace xsa::train
