// What an operator does with its tensors in an autocast region, where some come in the region's
// type and some in float32.
#pragma once

#include <ATen/autocast_mode.h>

namespace xsa::op {

/// While it lives, the calling operator's own calls see no autocast. Float64 tensors, integers and
/// tensors of other devices are never cast: the operator's checks say what it thinks of them.
class Autocast {
 public:
  explicit Autocast(at::DeviceType device)
      : device_(device), off_(at::autocast::get_autocast_dispatch_key_from_device_type(device)) {}

  /// For what is as costly as matrix products: the region's type.
  at::Tensor lower(const at::Tensor& tensor) const {
    return cast(tensor, at::autocast::get_autocast_dtype(device_));
  }
  at::Tensor cast(const at::Tensor& tensor, at::ScalarType type) const {
    return at::autocast::cached_cast(type, tensor, device_);
  }

 private:
  at::DeviceType device_;
  c10::impl::ExcludeDispatchKeyGuard off_;
};

}  // namespace xsa::op
