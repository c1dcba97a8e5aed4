// fp32 to and from bf16 and fp16, rounding to nearest even (Highway 1.0.3 truncates to bf16, a
// bias that hides in most tolerances). NaN stays NaN.
#pragma once

#include <cstdint>

#include "xsa/kernels/core/host_device.h"

namespace xsa::kernels {

XSA_HOST_DEVICE std::uint32_t float_bits(float value) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

XSA_HOST_DEVICE float bits_float(std::uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

XSA_HOST_DEVICE float from_bf16(std::uint16_t half) {
  return bits_float(static_cast<std::uint32_t>(half) << 16);
}

XSA_HOST_DEVICE std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = float_bits(value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x40u : rounded >> 16);
}

XSA_HOST_DEVICE float from_fp16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) return bits_float(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  // As fp32 bits the exponent is 112 too small, subnormals included; the product is exact.
  const float value = bits_float(magnitude << 13) * bits_float((127u + 112u) << 23);
  return bits_float(sign | float_bits(value));
}

XSA_HOST_DEVICE std::uint16_t to_fp16(float value) {
  const std::uint32_t sign = (float_bits(value) >> 16) & 0x8000u;
  const std::uint32_t bits = float_bits(value) & 0x7fffffffu;
  std::uint32_t half;
  if (bits > 0x7f800000u) {
    half = 0x7e00u;
  } else if (bits >= 0x477ff000u) {  // from halfway between the largest fp16 and 2^16
    half = 0x7c00u;
  } else if (bits < 0x38800000u) {  // below 2^-14: adding 1/2 rounds to the subnormals' unit, 2^-24
    half = float_bits(bits_float(bits) + 0.5f) - float_bits(0.5f);
  } else {
    half = (bits - (112u << 23) + 0xfffu + ((bits >> 13) & 1u)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace xsa::kernels
