// CPU tensors on the fused kernel: plumbing (strides, layouts, options, threads), held to the same
// oracles. Tile boundaries and instruction sets are tests/kernels' work.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "tests/op/cases.h"
#include "tests/support/compare.h"
#include "xsa/op/kernel_call.h"

namespace xsa::op::testing {
namespace {

using at::Tensor;

bool is_fused(const Case& c) { return attention_backend(c.q, c.k, c.v, c.options) == "cpu_fused"; }

void expect_fused_as_good_as_eager(const Case& c) {
  const BackendScope fused("cpu_fused");
  expect_as_good_as_eager(c);
}

TEST(CpuFused, EqualsTheOraclesForEveryOption) {
  std::vector<Case> cases = single_option_cases();
  for (std::uint64_t seed = 1; seed <= 60; ++seed) cases.push_back(random_case(seed));
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf})
    for (const Case& exact : cases) expect_fused_as_good_as_eager(exact.cast(type));
}

TEST(CpuFused, EqualsTheOraclesOverSeveralBlocks) {
  Sizes n;
  n.queries = 150, n.keys = 230, n.head_dim = 64, n.value_dim = 48;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const bool causal : {true, false})
      expect_fused_as_good_as_eager(make_case(n, 3, {.is_causal = causal}).cast(type));
}

/// The same values with another memory layout.
enum class Layout { kHeadsInTokens, kSliceOfProjection, kEveryOther };
Tensor laid_out(const Tensor& x, Layout layout) {
  switch (layout) {
    case Layout::kHeadsInTokens:
      return x.transpose(1, 2).contiguous().transpose(1, 2);
    case Layout::kSliceOfProjection: {
      const Tensor tokens = x.transpose(1, 2);
      return at::stack({at::full_like(tokens, NAN), tokens}, 2).select(2, 1).transpose(1, 2);
    }
    default:
      return at::stack({x, at::full_like(x, NAN)}, -1).select(-1, 0);
  }
}

TEST(CpuFused, TakesAnyStridesWithTheSameBits) {
  const Case plain = make_case({}, 5, {.is_causal = true}).cast(at::kFloat);
  ASSERT_TRUE(is_fused(plain));
  const Result expected = run_operator(plain);
  for (const Layout layout :
       {Layout::kHeadsInTokens, Layout::kSliceOfProjection, Layout::kEveryOther}) {
    Case c = plain;
    for (Tensor* tensor : {&c.q, &c.k, &c.v, &c.dz}) *tensor = laid_out(*tensor, layout);
    const Result actual = run_operator(c);
    for (const auto tensor :
         {&Result::z, &Result::lse, &Result::c, &Result::dq, &Result::dk, &Result::dv})
      EXPECT_TRUE(xsa::testing::same_bits(values(actual.*tensor), values(expected.*tensor)))
          << static_cast<int>(layout);
  }
}

TEST(CpuFused, TakesExpandedInputs) {
  Case c = make_case({.batch = 1}, 5, {.is_causal = true}).cast(at::kFloat);
  for (Tensor* tensor : {&c.q, &c.k, &c.v, &c.dz, &c.dlse}) {
    std::vector<std::int64_t> sizes = tensor->sizes().vec();
    sizes[0] = 3;
    *tensor = tensor->expand(sizes);
  }
  ASSERT_TRUE(is_fused(c));
  expect_fused_as_good_as_eager(c);
}

TEST(CpuFused, KeepsTheLayoutOfQ) {
  const Case c = make_case({}, 5).cast(at::kFloat);
  const AttentionResult plain = attention(c.q, c.k, c.v);
  EXPECT_TRUE(plain.z.is_contiguous());
  const AttentionResult heads_in_tokens =
      attention(laid_out(c.q, Layout::kHeadsInTokens), c.k, c.v);
  EXPECT_TRUE(heads_in_tokens.z.transpose(1, 2).is_contiguous());
  const AttentionResult slice = attention(laid_out(c.q, Layout::kSliceOfProjection), c.k, c.v);
  EXPECT_TRUE(slice.z.transpose(1, 2).is_contiguous());
}

class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }

 private:
  int before_;
};

TEST(CpuFused, BitsDoNotDependOnTheNumberOfThreads) {
  Sizes n;
  n.queries = n.keys = 300, n.head_dim = n.value_dim = 32;
  const Case c = make_case(n, 9, {.is_causal = true}).cast(at::kFloat);
  ASSERT_TRUE(is_fused(c));
  std::vector<Result> results;
  for (const int count : {1, 2, 3, 7}) {
    const Threads threads(count);
    results.push_back(run_operator(c));
  }
  for (const Result& actual : results)
    for (const auto tensor :
         {&Result::z, &Result::lse, &Result::c, &Result::dq, &Result::dk, &Result::dv})
      EXPECT_TRUE(xsa::testing::same_bits(values(actual.*tensor), values(results[0].*tensor)));
}

TEST(CpuFused, TheBitsOfASharedStrengthsGradientDoNotDependOnTheNumberOfThreads) {
  Sizes n;
  n.query_heads = n.key_heads = 1, n.batch = 1, n.queries = n.keys = 50000;
  n.head_dim = n.value_dim = 2;
  for (const at::Tensor& strength : {at::ones({}), at::ones({1})}) {
    Case c = make_case(n, 3, {.is_causal = true, .learned_strength = strength, .window = 3});
    c = c.cast(at::kFloat);
    std::vector<double> first;
    for (const int count : {1, 2, 3}) {
      const Threads threads(count);
      const std::vector<double> sum = values(run_operator(c).dlearned_strength);
      if (count == 1) first = sum;
      EXPECT_TRUE(xsa::testing::same_bits(sum, first));
    }
  }
}

TEST(KernelCall, RunsItsTasksOnSeveralThreads) {
  // at::parallel_for is silently serial in a file compiled without -fopenmp.
  const Threads threads(2);
  const Case c = make_case({}, 1).cast(at::kFloat);
  const KernelCall call({c.q, c.k, c.v}, c.options);
  EXPECT_EQ(call.params.parallel->workers, 2);
  std::atomic<int> started{0};
  std::vector<std::thread::id> ids(2);
  call.params.parallel->run(2, [&](std::int64_t index, std::int64_t) {
    ids[index] = std::this_thread::get_id();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (++started; started < 2 && std::chrono::steady_clock::now() < deadline;)
      std::this_thread::yield();
  });
  EXPECT_NE(ids[0], ids[1]);
}

TEST(KernelCall, RunsEveryTaskOnceOnAWorkerOfItsOwnAndPassesExceptionsOn) {
  const Threads threads(3);
  const Case c = make_case({}, 1).cast(at::kFloat);
  const KernelCall call({c.q, c.k, c.v}, c.options);
  std::vector<std::atomic<int>> runs(1000), busy(3);
  std::atomic<bool> shared{false};
  call.params.parallel->run(1000, [&](std::int64_t index, std::int64_t worker) {
    if (busy.at(worker)++ != 0) shared = true;
    ++runs[index];
    --busy[worker];
  });
  for (const auto& count : runs) EXPECT_EQ(count, 1);
  EXPECT_FALSE(shared);
  EXPECT_THROW(call.params.parallel->run(10,
                                         [](std::int64_t index, std::int64_t) {
                                           if (index == 4) throw std::runtime_error("task 4");
                                         }),
               std::runtime_error);
}

}  // namespace
}  // namespace xsa::op::testing
