#include "xsa/kernels/linear.h"

#include "xsa/kernels/core/element.h"

namespace xsa::kernels {

std::vector<double> reference_linear(const LinearParams& p) {
  std::vector<double> y;
  for (std::int64_t row = 0; row < p.rows; ++row)
    for (std::int64_t output = 0; output < p.outputs; ++output) {
      double sum = p.bias ? p.bias[output] : 0;
      for (std::int64_t i = 0; i < p.inputs; ++i)
        sum += p.x[row * p.inputs + i] * load_element(p.type, p.weight, output * p.inputs + i);
      y.push_back(sum);
    }
  return y;
}

}  // namespace xsa::kernels
