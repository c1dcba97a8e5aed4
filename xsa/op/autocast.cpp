// Under autocast q, k and v take the region's type; sums, lse and c stay float32, and learned
// options keep theirs.
#include <ATen/autocast_mode.h>

#include "xsa/op/signature.h"

namespace xsa::op {
namespace {

Outputs autocast(const Inputs& in, const AttentionOptions& options, at::DeviceType device) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(
      at::autocast::get_autocast_dispatch_key_from_device_type(device));
  const at::ScalarType type = at::autocast::get_autocast_dtype(device);
  const auto cast = [&](const at::Tensor& tensor) {
    return at::autocast::cached_cast(type, tensor, device);
  };
  return call_attention({cast(in.q), cast(in.k), cast(in.v)}, options);
}

}  // namespace

Outputs autocast_cpu_forward(const Inputs& inputs, const AttentionOptions& options) {
  return autocast(inputs, options, at::kCPU);
}

Outputs autocast_cuda_forward(const Inputs& inputs, const AttentionOptions& options) {
  return autocast(inputs, options, at::kCUDA);
}

}  // namespace xsa::op
