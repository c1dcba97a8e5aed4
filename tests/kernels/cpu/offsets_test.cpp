// Arrays whose elements lie further apart than 32 bits can count, in memory that is reserved and
// hardly touched.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <vector>

#include "tests/kernels/cpu/fused.h"
#include "tests/support/compare.h"
#include "xsa/kernels/core/element.h"

namespace xsa::kernels {
namespace {

using testing::Array;
using testing::Problem;
using testing::ProblemSpec;

constexpr std::int64_t kFar = std::int64_t{1} << 31;
/// Rows, heads and sequences of 2 each; one of the three is far apart.
constexpr std::array<std::array<std::int64_t, 4>, 3> kStrides = {
    {{1000, 500, kFar, 1}, {1000, kFar, 100, 1}, {kFar, 500, 100, 1}}};

/// Address space for one array; null where the machine does not give that much.
class Reserved {
 public:
  Reserved() {
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) memory_ = memory;
  }
  ~Reserved() {
    if (memory_) munmap(memory_, kBytes);
  }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  void* data() const { return memory_; }

 private:
  static constexpr std::size_t kBytes = (kFar + 4096) * sizeof(float);
  void* memory_ = nullptr;
};

std::int64_t offset(const std::array<std::int64_t, 4>& stride, std::int64_t b, std::int64_t h,
                    std::int64_t t, std::int64_t d) {
  return b * stride[0] + h * stride[1] + t * stride[2] + d * stride[3];
}

TEST_P(Fused, OffsetsBeyond32BitsAreFine) {
  for (const Type type : {Type::kFloat32, Type::kBFloat16})
    for (const auto& stride : kStrides) {
      ProblemSpec spec = sized(2, 2, 16, 16);  // whole vectors: gradients are summed in place
      spec.batch = spec.query_heads = spec.key_heads = 2, spec.type = type;
      Problem near(spec);
      run(near);
      std::array<Reserved, 8> memory;
      for (const Reserved& each : memory)
        if (!each.data()) GTEST_SKIP() << "no 64 GiB of address space";
      AttentionParams far = near.params();
      const auto view = [&](int n) { return MutableView{memory[n].data(), stride}; };
      far.z = view(0), far.dq = view(1), far.dk = view(2), far.dv = view(3);
      const std::array inputs{&near.q, &near.k, &near.v, &near.dz};
      const std::array places{&far.q, &far.k, &far.v, &far.dz};
      for (int n = 0; n < 4; ++n) {
        *places[n] = {memory[4 + n].data(), stride};
        inputs[n]->for_each([&](auto... at) {
          store_element(type, memory[4 + n].data(), offset(stride, at...), inputs[n]->get(at...));
        });
      }
      forward(far);
      backward(far);
      const std::array outputs{&near.z, &near.dq, &near.dk, &near.dv};
      for (int n = 0; n < 4; ++n) {
        std::vector<double> values;
        outputs[n]->for_each([&](auto... at) {
          values.push_back(load_element(type, memory[n].data(), offset(stride, at...)));
        });
        EXPECT_TRUE(testing::same_bits(values, outputs[n]->values())) << "output " << n;
      }
    }
}

}  // namespace
}  // namespace xsa::kernels
