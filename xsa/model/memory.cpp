#include "xsa/model/memory.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace xsa::model {
namespace {

/// Hands every request to ATen's own allocator and remembers its size by address: a pointer that
/// was made before the wrapping is freed like any other, and contexts stay plain pointers, as
/// oneDNN's raw_allocate needs them.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr data = inner_->allocate(bytes);
    if (data.get() != nullptr &&
        data.compare_exchange_deleter(inner_->raw_deleter(), &CountingAllocator::free))
      add(data.get(), static_cast<std::int64_t>(bytes));
    return data;
  }

  c10::DeleterFnPtr raw_deleter() const override { return &CountingAllocator::free; }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  std::int64_t bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  std::int64_t peak() {
    const std::lock_guard lock(mutex_);
    return peak_;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    peak_ = bytes_;
  }

 private:
  static void free(void* pointer);

  void add(void* pointer, std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    sizes_.emplace(pointer, bytes);
    bytes_ += bytes;
    peak_ = std::max(peak_, bytes_);
  }
  void remove(void* pointer) {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(pointer);
    if (found == sizes_.end()) return;
    bytes_ -= found->second;
    sizes_.erase(found);
  }

  c10::Allocator* inner_;
  std::mutex mutex_;
  std::unordered_map<void*, std::int64_t> sizes_;
  std::int64_t bytes_ = 0, peak_ = 0;
};

/// Installed at the first use and never destroyed: tensors outlive every static object.
CountingAllocator& counter() {
  static CountingAllocator* const allocator = [] {
    auto* made = new CountingAllocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(made, /*priority=*/255);
    return made;
  }();
  return *allocator;
}

void CountingAllocator::free(void* pointer) {
  CountingAllocator& allocator = counter();
  allocator.remove(pointer);  // first: another thread may get the address as soon as it is free
  allocator.inner_->raw_deleter()(pointer);
}

}  // namespace

std::int64_t tensor_bytes() { return counter().bytes(); }
std::int64_t peak_tensor_bytes() { return counter().peak(); }
void reset_peak_tensor_bytes() { counter().reset_peak(); }

}  // namespace xsa::model
