// What the doors of the CPU kernels share: workspaces, and params as the kernels take them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "xsa/kernels/attention.h"
#include "xsa/kernels/cpu/call.h"

namespace xsa::kernels::cpu {

/// Uninitialised floats on a cache line's boundary.
class Workspace {
 public:
  explicit Workspace(std::int64_t count)
      : memory_(std::make_unique_for_overwrite<float[]>(count + kLine)) {}
  float* data() const {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    return memory_.get() + (kLine - address / sizeof(float) % kLine) % kLine;
  }

 private:
  static constexpr std::int64_t kLine = 16;
  std::unique_ptr<float[]> memory_;
};

inline Strided strided(const void* data, const std::array<std::int64_t, 4>& stride) {
  return {static_cast<char*>(const_cast<void*>(data)), stride[0], stride[1], stride[2], stride[3]};
}
template <class AnyView>
Strided strided(const AnyView& view) {
  return strided(view.data, view.stride);
}

inline Element element_of(Type type) {
  return type == Type::kFloat32    ? Element::kFloat32
         : type == Type::kBFloat16 ? Element::kBFloat16
                                   : Element::kFloat16;
}

}  // namespace xsa::kernels::cpu
