// A call of the operator as the kernels take it: plain pointers and strides.
#pragma once

#include <vector>

#include "xsa/base/parallel.h"
#include "xsa/kernels/attention.h"
#include "xsa/op/signature.h"

namespace xsa::op {

/// `params` holds inputs, sizes and options, and runs on ATen's threads; outputs and gradients are
/// the caller's to fill. Valid while this object and the inputs live. Requires checked CPU tensors.
struct KernelCall {
  KernelCall(const Inputs& inputs, const AttentionOptions& options);
  KernelCall(const KernelCall&) = delete;  // params points into this object
  KernelCall& operator=(const KernelCall&) = delete;

  kernels::AttentionParams params;

 private:
  template <class Number>
  const Number* data(const OptionalTensor& option);
  void set_sizes(const Inputs& inputs);
  void set_tensor_options(const AttentionOptions& options);

  Parallel parallel_;
  std::vector<at::Tensor> converted_;
};

/// ATen's threads, as the kernels take them.
Parallel aten_threads();
kernels::Type kernel_type(at::ScalarType type);
kernels::View kernel_view(const at::Tensor& tensor);
kernels::MutableView kernel_mutable_view(const at::Tensor& tensor);

}  // namespace xsa::op
