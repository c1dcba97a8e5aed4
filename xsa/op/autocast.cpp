// Under autocast q, k and v take the region's type; sums, lse and c stay float32, and learned
// options keep theirs.
#include "xsa/op/autocast.h"

#include "xsa/op/signature.h"

namespace xsa::op {
namespace {

Outputs autocast(const Inputs& in, const AttentionOptions& options, at::DeviceType device) {
  const Autocast region(device);
  return call_attention({region.lower(in.q), region.lower(in.k), region.lower(in.v)}, options);
}

}  // namespace

Outputs autocast_cpu_forward(const Inputs& inputs, const AttentionOptions& options) {
  return autocast(inputs, options, at::kCPU);
}

Outputs autocast_cuda_forward(const Inputs& inputs, const AttentionOptions& options) {
  return autocast(inputs, options, at::kCUDA);
}

}  // namespace xsa::op
