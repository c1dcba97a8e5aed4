#include "xsa/model/linear.h"

#include <ATen/ATen.h>

#include "xsa/kernels/linear.h"
#include "xsa/op/kernel_call.h"

namespace xsa::model {

at::Tensor Linear::operator()(const at::Tensor& x) const {
  if (x.size(0) > kFewRows && weight.scalar_type() == at::kFloat)
    return at::linear(x, weight, bias);
  const at::Tensor rows = x.contiguous();
  const at::Tensor y = at::empty({x.size(0), weight.size(0)}, x.options());
  kernels::LinearParams params;
  params.rows = x.size(0), params.inputs = x.size(1), params.outputs = weight.size(0);
  params.type = op::kernel_type(weight.scalar_type());
  params.x = rows.const_data_ptr<float>();
  params.weight = weight.const_data_ptr();
  if (bias.defined()) params.bias = bias.const_data_ptr<float>();
  params.y = y.mutable_data_ptr<float>();
  const Parallel parallel = op::aten_threads();
  params.parallel = &parallel;
  kernels::linear(params);
  return y;
}

}  // namespace xsa::model
