// What the decode path reads: memory that it may not touch is closed.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/kernels/cpu/decode_fixture.h"
#include "tests/support/compare.h"
#include "tests/support/tolerance.h"
#include "xsa/kernels/core/element.h"

namespace xsa::kernels {
namespace {

using testing::fused_tolerances;
using testing::is_near;
using testing::Problem;
using testing::ProblemSpec;
using testing::same_bits;

/// Memory of whole pages that may not be touched until pages are opened.
class Fenced {
 public:
  explicit Fenced(std::int64_t bytes)
      : bytes_(bytes),
        memory_(static_cast<char*>(
            mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
  ~Fenced() {
    if (*this) munmap(memory_, bytes_);
  }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  explicit operator bool() const { return memory_ != MAP_FAILED; }
  /// Opens what is needed for [begin, end), whole pages.
  char* open(std::int64_t begin, std::int64_t end) {
    const std::int64_t page = sysconf(_SC_PAGESIZE), first = begin / page * page;
    EXPECT_EQ(mprotect(memory_ + first, end - first, PROT_READ | PROT_WRITE), 0);
    return memory_ + begin;
  }
  char* data() const { return memory_; }

 private:
  std::int64_t bytes_;
  char* memory_;
};

TEST_P(Decode, ReadsOnlyTheWindowAndTheSinksOfALongCache) {
  constexpr std::int64_t kKeys = 1 << 20, kRow = 16 * sizeof(float), kShort = 300;
  Fenced k(kKeys * kRow), v(kKeys * kRow);
  ASSERT_TRUE(k && v);
  // The same problem in a cache that ends where the window begins, but for the sinks.
  Problem near(decoding(2, kShort));
  near.options.window = 290, near.options.num_sink_keys = 3;
  decode(near);
  AttentionParams far = near.params();
  const std::vector<double> expected = near.z.values();
  for (const auto& [fence, array] : {std::pair{&k, &near.k}, {&v, &near.v}}) {
    fence->open(0, 3 * kRow);
    fence->open((kKeys - 291) * kRow, kKeys * kRow);
    for (std::int64_t s = 0; s < kShort; ++s)
      if (s < 3 || s >= kShort - 291)
        for (std::int64_t d = 0; d < 16; ++d)
          reinterpret_cast<float*>(fence->data())[(s < 3 ? s : kKeys - kShort + s) * 16 + d] =
              static_cast<float>(array->get(0, 0, s, d));
  }
  far.keys = kKeys, far.own_offset = kKeys - 2;
  far.k = {k.data(), {0, 0, 16, 1}}, far.v = {v.data(), {0, 0, 16, 1}};
  forward(far);
  EXPECT_TRUE(is_near(near.z.values(), expected, fused_tolerances(near).z));
}

TEST_P(Decode, ReadsNothingBehindTheLastElement) {
  for (const Type type : {Type::kFloat32, Type::kBFloat16, Type::kFloat16})
    for (const std::int64_t dim : {1, 3, 13, 16, 20, 33}) {
      ProblemSpec spec = decoding(3, 301, dim);
      spec.type = type;
      Problem problem(spec);
      decode(problem);
      const std::vector<double> expected = problem.z.values();
      const std::int64_t bytes = 301 * dim * size_of(type), all = std::int64_t{1} << 20;
      Fenced k(all + 65536), v(all + 65536);
      ASSERT_TRUE(k && v);
      AttentionParams params = problem.params();
      for (const auto& [fence, view] : {std::pair{&k, &params.k}, {&v, &params.v}}) {
        char* at = fence->open(all - bytes, all);
        std::memcpy(at, view->data, bytes);
        view->data = at;
      }
      forward(params);
      EXPECT_TRUE(same_bits(problem.z.values(), expected));
    }
}

TEST_P(Decode, OffsetsBeyond31BitsAreFine) {
  // 4 keys, 2^30 floats apart, in memory that is reserved and hardly touched.
  constexpr std::int64_t kStride = std::int64_t{1} << 30, kRow = 16 * sizeof(float);
  Fenced memory(4 * kStride * static_cast<std::int64_t>(sizeof(float)));
  if (!memory) GTEST_SKIP() << "no 16 GiB of address space";
  Problem near(decoding(2, 4));
  decode(near);
  const std::vector<double> expected = near.z.values();
  AttentionParams far = near.params();
  for (const auto& [array, view] : {std::pair{&near.k, &far.k}, {&near.v, &far.v}}) {
    for (std::int64_t s = 0; s < 4; ++s) {
      const std::int64_t begin = s * kStride * static_cast<std::int64_t>(sizeof(float));
      float* row = reinterpret_cast<float*>(memory.open(begin, begin + kRow));
      for (std::int64_t d = 0; d < 16; ++d) row[d] = static_cast<float>(array->get(0, 0, s, d));
    }
    *view = {memory.data(), {0, 0, kStride, 1}};
    forward(far);
    EXPECT_TRUE(same_bits(near.z.values(), expected));
    *view = array->view();
  }
}

}  // namespace
}  // namespace xsa::kernels
