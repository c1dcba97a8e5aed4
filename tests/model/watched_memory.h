// The CPU memory of ATen's tensors under watch: what is left unwritten shows, and the most that was
// in use at once is known.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdint>
#include <cstring>

#include "xsa/model/memory.h"

namespace xsa::model::test {

class PoisoningAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr data = inner_->allocate(bytes);
    if (bytes > 0) std::memset(data.get(), 0xFF, bytes);
    return data;
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_->raw_deleter(); }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    inner_->copy_data(target, source, bytes);
  }

 private:
  c10::Allocator* inner_ = c10::GetCPUAllocator();
};

/// From the first call on, new memory holds NaN.
inline void poison_new_memory() {
  [[maybe_unused]] static const bool installed = [] {
    c10::SetCPUAllocator(new PoisoningAllocator, 255);
    return true;
  }();
}

/// The bytes in use at most while it lives, beyond those that were before it; new memory is
/// poisoned.
class PeakMemory {
 public:
  PeakMemory() {
    poison_new_memory();
    before_ = tensor_bytes();
    reset_peak_tensor_bytes();
  }
  std::int64_t bytes() const { return peak_tensor_bytes() - before_; }

 private:
  std::int64_t before_ = 0;
};

}  // namespace xsa::model::test
