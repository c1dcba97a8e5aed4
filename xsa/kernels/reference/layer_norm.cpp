#include "xsa/kernels/layer_norm.h"

#include <cmath>

#include "xsa/kernels/core/element.h"

namespace xsa::kernels {

ReferenceAddLayerNorm reference_add_layer_norm(const AddLayerNormParams& p) {
  ReferenceAddLayerNorm out;
  const auto width = static_cast<double>(p.width);
  for (std::int64_t row = 0; row < p.rows; ++row) {
    std::vector<double> s;
    double mean = 0, variance = 0;
    for (std::int64_t c = row * p.width; c < (row + 1) * p.width; ++c) {
      s.push_back(load_element(p.type, p.x, c) + load_element(p.type, p.residual, c));
      mean += s.back() / width;
    }
    for (const double value : s) variance += (value - mean) * (value - mean) / width;
    const double rstd = 1 / std::sqrt(variance + p.eps);
    for (std::size_t c = 0; c < s.size(); ++c)
      out.y.push_back((s[c] - mean) * rstd * p.weight[c] + (p.bias ? p.bias[c] : 0));
    out.sum.insert(out.sum.end(), s.begin(), s.end());
    out.mean.push_back(mean);
    out.rstd.push_back(rstd);
  }
  return out;
}

ReferenceAddLayerNormBackward reference_add_layer_norm_backward(const AddLayerNormParams& p) {
  const ReferenceAddLayerNorm out = reference_add_layer_norm(p);
  const auto width = static_cast<std::size_t>(p.width);
  ReferenceAddLayerNormBackward gradients;
  gradients.dweight.assign(width, 0);
  gradients.dbias.assign(width, 0);
  for (std::size_t row = 0; row < out.mean.size(); ++row) {
    std::vector<double> n, g;
    double mean_g = 0, mean_gn = 0;
    for (std::size_t c = 0; c < width; ++c) {
      const auto at = static_cast<std::int64_t>(row * width + c);
      const double dy = load_element(p.type, p.dy, at);
      n.push_back((out.sum[row * width + c] - out.mean[row]) * out.rstd[row]);
      g.push_back(p.weight[c] * dy);
      gradients.dweight[c] += n[c] * dy;
      gradients.dbias[c] += dy;
      mean_g += g[c] / static_cast<double>(width);
      mean_gn += g[c] * n[c] / static_cast<double>(width);
    }
    for (std::size_t c = 0; c < width; ++c) {
      const auto at = static_cast<std::int64_t>(row * width + c);
      const double dsum = p.dsum ? load_element(p.type, p.dsum, at) : 0;
      gradients.dx.push_back(out.rstd[row] * (g[c] - mean_g - n[c] * mean_gn) + dsum);
    }
  }
  return gradients;
}

}  // namespace xsa::kernels
