#include "xsa/model/memory.h"

#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace xsa::model {
namespace {

at::Tensor bytes(std::int64_t count) { return at::empty({count}, at::kByte); }

TEST(TensorMemory, CountsEveryByteThatIsAskedFor) {
  const std::int64_t before = tensor_bytes();
  {
    const at::Tensor one = bytes(1), odd = bytes(1001), large = bytes(5'000'003);
    EXPECT_EQ(tensor_bytes() - before, 1 + 1001 + 5'000'003);
    const at::Tensor view = large.narrow(0, 10, 100);
    EXPECT_EQ(tensor_bytes() - before, 1 + 1001 + 5'000'003);
  }
  EXPECT_EQ(tensor_bytes(), before);
}

TEST(TensorMemory, RemembersTheMostThatLivedAtOnce) {
  reset_peak_tensor_bytes();
  const std::int64_t before = tensor_bytes();
  bytes(3000);
  const at::Tensor kept = bytes(1000);
  { const at::Tensor first = bytes(1500), second = bytes(2000); }
  bytes(2500);
  EXPECT_EQ(peak_tensor_bytes() - before, 1000 + 1500 + 2000);
  reset_peak_tensor_bytes();
  EXPECT_EQ(peak_tensor_bytes() - before, 1000);
}

TEST(TensorMemory, CountsWhatAnotherThreadFrees) {
  const std::int64_t before = tensor_bytes();
  at::Tensor tensor = bytes(100);
  std::thread([moved = std::move(tensor)]() mutable { moved.reset(); }).join();
  EXPECT_EQ(tensor_bytes(), before);
}

TEST(TensorMemory, IsExactWhileThreadsAllocateAtOnce) {
  const std::int64_t before = tensor_bytes();
  std::vector<std::thread> workers;
  for (std::int64_t worker = 0; worker < 4; ++worker)
    workers.emplace_back([worker] {
      for (std::int64_t i = 1; i < 2000; ++i) bytes(i * 7 + worker);
    });
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(tensor_bytes(), before);
}

TEST(TensorMemory, ServesRawPointersAsOneDnnAsksForThem) {
  const std::int64_t before = tensor_bytes();
  c10::Allocator* allocator = c10::GetCPUAllocator();
  void* pointer = allocator->raw_allocate(4096);
  EXPECT_EQ(tensor_bytes() - before, 4096);
  allocator->raw_deallocate(pointer);
  EXPECT_EQ(tensor_bytes(), before);
}

TEST(TensorMemory, FreesWhatWasMadeBeforeTheCounting) {
  tensor_bytes();
  const std::int64_t before = tensor_bytes();
  void* pointer = c10::GetDefaultCPUAllocator()->raw_allocate(64);  // as before the wrapping
  c10::GetCPUAllocator()->raw_deallocate(pointer);
  EXPECT_EQ(tensor_bytes(), before);
}

}  // namespace
}  // namespace xsa::model
