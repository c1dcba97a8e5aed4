#include "xsa/kernels/rope.h"

#include "xsa/kernels/core/element.h"

namespace xsa::kernels {

std::vector<double> reference_rotary_embedding(const RotaryParams& p) {
  const std::int64_t half = p.head_dim / 2;
  std::vector<double> y(static_cast<std::size_t>(p.batch * p.heads * p.tokens * p.head_dim));
  for (std::int64_t row = 0; row < p.batch * p.heads * p.tokens; ++row) {
    const std::int64_t b = row / p.tokens / p.heads, h = row / p.tokens % p.heads,
                       t = row % p.tokens;
    const std::int64_t begin = b * p.x.stride[0] + h * p.x.stride[1] + t * p.x.stride[2];
    for (std::int64_t i = 0; i < half; ++i) {
      const double first = load_element(p.type, p.x.data, begin + i * p.x.stride[3]);
      const double second = load_element(p.type, p.x.data, begin + (i + half) * p.x.stride[3]);
      const double cos = p.cos[t * half + i];
      const double sin = p.inverse ? -p.sin[t * half + i] : p.sin[t * half + i];
      const auto at = static_cast<std::size_t>(row * p.head_dim + i);
      y[at] = first * cos - second * sin;
      y[at + static_cast<std::size_t>(half)] = first * sin + second * cos;
    }
  }
  return y;
}

}  // namespace xsa::kernels
