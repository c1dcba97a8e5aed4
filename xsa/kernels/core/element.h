// One element of any Type, by address: for the reference, tests and the kernels' slow paths.
#pragma once

#include <cstdint>

#include "xsa/kernels/attention.h"
#include "xsa/kernels/core/convert.h"

namespace xsa::kernels {

inline std::int64_t size_of(Type type) {
  return type == Type::kFloat64 ? 8 : type == Type::kFloat32 ? 4 : 2;
}

inline double load_element(Type type, const void* data, std::int64_t index) {
  switch (type) {
    case Type::kFloat32:
      return static_cast<const float*>(data)[index];
    case Type::kBFloat16:
      return from_bf16(static_cast<const std::uint16_t*>(data)[index]);
    case Type::kFloat16:
      return from_fp16(static_cast<const std::uint16_t*>(data)[index]);
    case Type::kFloat64:
      break;
  }
  return static_cast<const double*>(data)[index];
}

/// Rounds to nearest even; bf16 and fp16 by way of fp32.
inline void store_element(Type type, void* data, std::int64_t index, double value) {
  switch (type) {
    case Type::kFloat32:
      static_cast<float*>(data)[index] = static_cast<float>(value);
      return;
    case Type::kBFloat16:
      static_cast<std::uint16_t*>(data)[index] = to_bf16(static_cast<float>(value));
      return;
    case Type::kFloat16:
      static_cast<std::uint16_t*>(data)[index] = to_fp16(static_cast<float>(value));
      return;
    case Type::kFloat64:
      static_cast<double*>(data)[index] = value;
      return;
  }
}

}  // namespace xsa::kernels
