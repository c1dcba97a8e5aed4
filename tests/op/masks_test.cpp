// Masks on every path: what a row may not see it does not see, and what it does not see at all.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/op/cases.h"
#include "tests/support/compare.h"

namespace xsa::op::testing {
namespace {

using at::Tensor;

/// "auto" is the fused kernel.
class Masks : public ::testing::TestWithParam<const char*> {
  BackendScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Paths, Masks, ::testing::Values("composite", "auto"),
                         [](const auto& path) { return path.param; });

constexpr double kStrange[] = {std::numeric_limits<double>::quiet_NaN(), INFINITY, 1e30};

Tensor ints(std::initializer_list<std::int64_t> numbers, at::ScalarType type = at::kLong) {
  return at::tensor(numbers, at::kLong).to(type);
}

Case single_case(std::uint64_t seed, const AttentionOptions& options) {
  Case c = make_case({.batch = 1, .queries = 40, .keys = 40}, seed, options).cast(at::kFloat);
  if (c.options.learned_strength) c.options.learned_strength = c.options.learned_strength->clone();
  return c;
}

void expect_same_bits(const Tensor& actual, const Tensor& expected) {
  EXPECT_TRUE(xsa::testing::same_bits(values(actual), values(expected)));
}

/// Poisons keys [begin, end); rows [first, last) do not see them and keep their bits.
void expect_unseen(const Case& c, std::int64_t begin, std::int64_t end, std::int64_t first,
                   std::int64_t last) {
  const Result clean = run_operator(c);
  for (const double strange : kStrange) {
    Case dirty = c;
    for (Tensor* tensor : {&dirty.k, &dirty.v}) {
      *tensor = tensor->clone();
      tensor->narrow(2, begin, end - begin).fill_(strange);
    }
    const Result result = run_operator(dirty);
    for (const auto rows : {&Result::z, &Result::lse, &Result::c, &Result::dq})
      expect_same_bits((result.*rows).narrow(2, first, last - first),
                       (clean.*rows).narrow(2, first, last - first));
  }
}

TEST_P(Masks, AKeyOutsideTheWindowReachesNoRow) {
  for (const bool causal : {true, false}) {
    expect_unseen(single_case(1, {.is_causal = causal, .window = 5}), 3, 5, 9, 40);
    expect_unseen(single_case(2, {.is_causal = causal, .num_sink_keys = 2, .window = 5}), 10, 12,
                  16, 40);
  }
}

TEST_P(Masks, AnotherDocumentReachesNoRow) {
  const Tensor documents = ints({0, 1, 20, 20, 40}, at::kInt);
  for (const bool causal : {true, false}) {
    expect_unseen(single_case(3, {.is_causal = causal, .cu_seqlens = documents}), 20, 40, 0, 20);
    expect_unseen(single_case(4, {.is_causal = causal, .cu_seqlens = documents}), 0, 20, 20, 40);
  }
}

TEST_P(Masks, PaddingReachesNoRow) {
  AttentionOptions options{.key_start = ints({6}), .key_end = ints({30})};
  expect_unseen(single_case(5, options), 0, 6, 0, 40);
  expect_unseen(single_case(6, options), 30, 40, 0, 40);
}

TEST_P(Masks, ARowWithoutAVisibleKeyHasItsSinkLogitForLse) {
  Case c = single_case(7, {.sink_logits = at::tensor({0.5, -3.0, 100.0, 0.0}, at::kDouble)});
  c.options.key_start = ints({20}), c.options.key_end = ints({20});
  const Result result = run_operator(c);
  const Tensor sink = c.options.sink_logits->view({1, 4, 1}).expand({1, 4, 40});
  EXPECT_TRUE(xsa::testing::is_near(values(result.lse), values(sink), 2e-5));
  for (const auto zero : {&Result::z, &Result::c, &Result::dq, &Result::dk, &Result::dv})
    EXPECT_TRUE((result.*zero == 0).all().item<bool>());
  // lse is the sink logit, whose gradient is therefore lse's.
  EXPECT_TRUE(xsa::testing::is_near(values(result.dsink_logits),
                                    values(c.dlse.to(at::kDouble).sum(at::IntArrayRef{0, 2})),
                                    1e-4));
}

TEST_P(Masks, AQueryThatDoesNotSeeItsOwnKeyExcludesNothing) {
  const Case c = single_case(8, {.is_causal = true, .key_end = ints({30})});
  Case standard = c;
  standard.options.strength = 0;
  const AttentionResult z = attention(c.q, c.k, c.v, c.options);
  const AttentionResult y = attention(c.q, c.k, c.v, standard.options);
  expect_same_bits(z.z.narrow(2, 30, 10), y.z.narrow(2, 30, 10));
  EXPECT_FALSE(z.z.narrow(2, 20, 10).equal(y.z.narrow(2, 20, 10)));
  EXPECT_TRUE((z.c.narrow(2, 30, 10) == 0).all().item<bool>());
}

TEST_P(Masks, SinkKeysAreSeenFromEveryDocumentAndWindow) {
  // Window 1 and one sink key: each row is a mean of two values.
  Case c = single_case(9, {.strength = 0, .num_sink_keys = 1, .window = 1});
  c.options.cu_seqlens = ints({0, 13, 40}, at::kInt);
  const AttentionResult out = attention(c.q, c.k, c.v, c.options);
  const Tensor k = c.k.repeat_interleave(2, 1), v = c.v.repeat_interleave(2, 1);
  const double scale = 1 / std::sqrt(5.0);
  const Tensor own = (c.q * k).sum(-1) * scale;
  const Tensor sink = (c.q * k.narrow(2, 0, 1)).sum(-1) * scale;
  const Tensor share = (sink - own).sigmoid().unsqueeze(-1);
  const Tensor expected = share * v.narrow(2, 0, 1) + (1 - share) * v;
  EXPECT_TRUE(xsa::testing::is_near(values(out.z), values(expected), 2e-6));
}

TEST_P(Masks, BitsDoNotDependOnTheRun) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    const Case c = random_case(seed).cast(at::kFloat);
    SCOPED_TRACE(c.name);
    const Result first = run_operator(c), again = run_operator(c);
    for (const auto each : {&Result::z, &Result::lse, &Result::c, &Result::dq, &Result::dk,
                            &Result::dv, &Result::dlearned_strength, &Result::dsink_logits})
      if ((first.*each).defined()) expect_same_bits(again.*each, first.*each);
  }
}

TEST(AttentionBackend, IsTheFusedKernelForEveryOption) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf})
    for (const Case& exact : single_option_cases()) {
      const Case c = exact.cast(type);
      EXPECT_EQ(attention_backend(c.q, c.k, c.v, c.options), "cpu_fused") << c.name;
    }
}

TEST(AttentionBackend, IsTheCompositePathForDoubleAndBeyond256Dimensions) {
  const Case c = make_case({}, 1);
  EXPECT_EQ(attention_backend(c.q, c.k, c.v).rfind("composite", 0), 0u);
  const Case wide = make_case({.head_dim = 257}, 1).cast(at::kFloat);
  EXPECT_EQ(attention_backend(wide.q, wide.k, wide.v),
            "composite: the CPU kernel takes head dimensions from 1 to 256");
}

}  // namespace
}  // namespace xsa::op::testing
