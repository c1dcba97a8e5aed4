// The bytes that ATen's CPU tensors take while an object lives, beyond those that lived before it.
// New memory holds NaN, so that what is left unwritten shows.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace xsa::model::test {

/// Wraps the CPU allocator for good once first used: storage made before is freed by its own.
class CountingAllocator final : public c10::Allocator {
 public:
  static CountingAllocator& get() {
    static CountingAllocator* const allocator = new CountingAllocator;
    return *allocator;
  }
  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr data = inner_->allocate(bytes);
    void* const address = data.get();
    if (bytes > 0) std::memset(address, 0xFF, bytes);
    const std::lock_guard lock(mutex_);
    sizes_[address] = static_cast<std::int64_t>(bytes);
    live_ += static_cast<std::int64_t>(bytes);
    peak_ = std::max(peak_, live_);
    data.release_context();
    return {address, address, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    default_copy_data(target, source, bytes);
  }
  std::int64_t restart() {
    const std::lock_guard lock(mutex_);
    return peak_ = live_;
  }
  std::int64_t peak() {
    const std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  CountingAllocator() : inner_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, 255); }
  static void release(void* address) {
    if (address == nullptr) return;
    CountingAllocator& self = get();
    {
      const std::lock_guard lock(self.mutex_);
      const auto found = self.sizes_.find(address);
      if (found != self.sizes_.end()) {  // else it was made before the wrapping
        self.live_ -= found->second;
        self.sizes_.erase(found);
      }
    }
    self.inner_->raw_deleter()(address);
  }

  c10::Allocator* inner_;
  std::mutex mutex_;
  std::unordered_map<void*, std::int64_t> sizes_;
  std::int64_t live_ = 0, peak_ = 0;
};

class PeakMemory {
 public:
  PeakMemory() : before_(CountingAllocator::get().restart()) {}
  std::int64_t bytes() const { return CountingAllocator::get().peak() - before_; }

 private:
  std::int64_t before_;
};

}  // namespace xsa::model::test
