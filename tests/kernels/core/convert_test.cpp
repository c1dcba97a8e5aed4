#include "xsa/kernels/core/convert.h"

#include <gtest/gtest.h>

#include <cmath>

namespace xsa::kernels {
namespace {

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(to_bf16(1.0f + 1.0f / 256), 0x3f80);  // halfway: to the even one
  EXPECT_EQ(to_bf16(1.0f + 3.0f / 256), 0x3f82);
  EXPECT_EQ(to_bf16(1.0f + 1.1f / 256), 0x3f81);
  EXPECT_EQ(to_bf16(3.4e38f), 0x7f80);  // beyond the largest: infinity
  EXPECT_EQ(to_bf16(-INFINITY), 0xff80);
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(NAN))));
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(bits_float(0x7f800001u)))));
}

TEST(BFloat16, EveryValueComesBack) {
  for (std::uint32_t half = 0; half < 0x10000; ++half)
    if (!std::isnan(from_bf16(static_cast<std::uint16_t>(half)))) {
      EXPECT_EQ(to_bf16(from_bf16(static_cast<std::uint16_t>(half))), half);
    }
}

TEST(Float16, EveryValueComesBackAndIsTheRightNumber) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const float value = from_fp16(static_cast<std::uint16_t>(half));
    const int exponent = half >> 10 & 31, mantissa = half & 1023;
    if (exponent == 31 && mantissa) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(from_fp16(to_fp16(value))));
      continue;
    }
    EXPECT_EQ(to_fp16(value), half);
    const double size = exponent == 31 ? INFINITY
                        : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                       : std::ldexp(mantissa, -24);
    EXPECT_EQ(value, half & 0x8000 ? -size : size);
  }
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(to_fp16(1.0f + 1.0f / 2048), 0x3c00);
  EXPECT_EQ(to_fp16(1.0f + 3.0f / 2048), 0x3c02);
  EXPECT_EQ(to_fp16(65519.0f), 0x7bff);
  EXPECT_EQ(to_fp16(65520.0f), 0x7c00);
  EXPECT_EQ(to_fp16(std::ldexp(1.0f, -25)), 0);  // half the smallest subnormal
  EXPECT_EQ(to_fp16(std::ldexp(3.0f, -25)), 2);
}

}  // namespace
}  // namespace xsa::kernels
