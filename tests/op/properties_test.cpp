// What must hold of exclusive attention on whatever path computes it.
#include <gtest/gtest.h>

#include "tests/op/cases.h"
#include "tests/support/compare.h"

namespace xsa::op::testing {
namespace {

using at::Tensor;

/// "auto" is the fused kernel where it takes the call.
class Properties : public ::testing::TestWithParam<const char*> {
  BackendScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Paths, Properties, ::testing::Values("composite", "auto"),
                         [](const auto& path) { return path.param; });

constexpr double kClose = 2e-6;  // fp32, values of norm about 1

Case square_case(std::uint64_t seed, const AttentionOptions& options = {}) {
  Sizes n;
  n.queries = n.keys = 7;
  return make_case(n, seed, options).cast(at::kFloat);
}

AttentionResult run(const Case& c) { return attention(c.q, c.k, c.v, c.options); }

void expect_near(const Tensor& actual, const Tensor& expected, double tolerance = kClose) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  EXPECT_TRUE(xsa::testing::is_near(values(actual), values(expected), tolerance));
}
void expect_same_bits(const Tensor& actual, const Tensor& expected) {
  EXPECT_TRUE(xsa::testing::same_bits(values(actual), values(expected)));
}
Tensor zeros_of(const Tensor& x) { return at::zeros_like(x); }

TEST_P(Properties, NothingIsLeftAlongTheOwnValue) {
  const Case c = square_case(1);
  const Tensor v = c.v.repeat_interleave(2, 1);
  const Tensor along = (run(c).z * v).sum(-1);
  expect_near(along, zeros_of(along));
}

TEST_P(Properties, TheFirstCausalTokenIsExcludedWhole) {
  const Tensor first = run(square_case(2, {.is_causal = true})).z.select(2, 0);
  expect_near(first, zeros_of(first), 1e-7);
}

TEST_P(Properties, ALaterTokenChangesNothingBeforeIt) {
  const Case c = square_case(3, {.is_causal = true});
  Case later = c;
  for (Tensor* tensor : {&later.q, &later.k, &later.v}) {
    *tensor = tensor->clone();
    tensor->narrow(2, 5, 2).fill_(NAN);
  }
  const AttentionResult a = run(c), b = run(later);
  expect_same_bits(a.z.narrow(2, 0, 5), b.z.narrow(2, 0, 5));
  expect_same_bits(a.lse.narrow(2, 0, 5), b.lse.narrow(2, 0, 5));
  expect_same_bits(a.c.narrow(2, 0, 5), b.c.narrow(2, 0, 5));
  EXPECT_TRUE(b.z.narrow(2, 5, 2).isnan().all().item<bool>());
}

TEST_P(Properties, AWindowOfAllKeysIsNoWindow) {
  for (const bool causal : {false, true}) {
    const Case plain = square_case(4, {.is_causal = causal});
    Case windowed = plain;
    windowed.options.window = 7;
    expect_same(run_operator(windowed), run_operator(plain), kClose);
  }
}

TEST_P(Properties, TwoHalvesOfTheKeysMergeByTheirLse) {
  const Case c = make_case({.queries = 4, .keys = 10}, 5, {.strength = 0}).cast(at::kFloat);
  const auto half = [&](std::int64_t first) {
    return attention(c.q, c.k.narrow(2, first, 5), c.v.narrow(2, first, 5), c.options);
  };
  const AttentionResult whole = run(c), left = half(0), right = half(5);
  const Tensor lse = left.lse.logaddexp(right.lse);
  const auto share = [&](const AttentionResult& part) {
    return part.z * (part.lse - lse).exp().unsqueeze(-1);
  };
  expect_near(lse, whole.lse);
  expect_near(share(left) + share(right), whole.z);
}

TEST_P(Properties, PackedDocumentsEqualTheDocumentsOneByOne) {
  Case packed = make_case({.batch = 1, .queries = 7, .keys = 7}, 6, {.is_causal = true});
  packed = packed.cast(at::kFloat);
  const std::vector<std::int32_t> ends = {0, 3, 7};
  packed.options.cu_seqlens = at::tensor(ends, at::kInt);
  const Result whole = run_operator(packed);
  for (std::size_t d = 0; d + 1 < ends.size(); ++d) {
    const auto cut = [&](const Tensor& x) { return x.narrow(2, ends[d], ends[d + 1] - ends[d]); };
    Case one = packed;
    one.options.cu_seqlens.reset();
    for (Tensor* tensor : {&one.q, &one.k, &one.v, &one.dz, &one.dlse}) *tensor = cut(*tensor);
    const Result alone = run_operator(one);
    for (const auto tensor :
         {&Result::z, &Result::lse, &Result::c, &Result::dq, &Result::dk, &Result::dv})
      expect_near(cut(whole.*tensor), alone.*tensor);
  }
}

TEST_P(Properties, PaddingEqualsCuttingWhateverIsInIt) {
  const std::int64_t start = 2, length = 4;
  for (const bool causal : {false, true}) {
    Case padded = make_case({.batch = 1, .queries = 7, .keys = 7}, 7, {.is_causal = causal});
    padded = padded.cast(at::kFloat);
    Case cut = padded;
    for (Tensor* tensor : {&cut.q, &cut.k, &cut.v, &cut.dz, &cut.dlse})
      *tensor = tensor->narrow(2, start, length);
    for (Tensor* tensor : {&padded.k, &padded.v}) {
      const Tensor real = tensor->narrow(2, start, length).clone();
      tensor->fill_(NAN).narrow(2, start, length).copy_(real);
    }
    // Nobody differentiates the padding's own rows.
    for (Tensor* tensor : {&padded.dz, &padded.dlse}) {
      const Tensor real = tensor->narrow(2, start, length).clone();
      tensor->zero_().narrow(2, start, length).copy_(real);
    }
    padded.options.key_start = at::tensor({start}, at::kLong);
    padded.options.key_end = at::tensor({start + length}, at::kLong);
    const Result all = run_operator(padded), part = run_operator(cut);
    for (const auto tensor :
         {&Result::z, &Result::lse, &Result::c, &Result::dq, &Result::dk, &Result::dv})
      expect_near((all.*tensor).narrow(2, start, length), part.*tensor);
    for (const auto tensor : {&Result::dk, &Result::dv})  // and nothing flows into it
      expect_near((all.*tensor).narrow(2, 0, start), zeros_of((all.*tensor).narrow(2, 0, start)),
                  0);
  }
}

TEST_P(Properties, GroupedHeadsEqualRepeatedHeads) {
  const Case grouped = square_case(8, {.is_causal = true});
  Case repeated = grouped;
  repeated.k = grouped.k.repeat_interleave(2, 1);
  repeated.v = grouped.v.repeat_interleave(2, 1);
  const Result a = run_operator(grouped), b = run_operator(repeated);
  expect_near(a.z, b.z);
  expect_near(a.dq, b.dq);
  expect_near(a.dk, b.dk.unflatten(1, {2, 2}).sum(2));
  expect_near(a.dv, b.dv.unflatten(1, {2, 2}).sum(2));
}

TEST_P(Properties, BitsDoNotDependOnBatchNeighbours) {
  const Case c = square_case(9, {.is_causal = true});
  const AttentionResult both = run(c);
  const AttentionResult alone =
      attention(c.q.narrow(0, 1, 1), c.k.narrow(0, 1, 1), c.v.narrow(0, 1, 1), c.options);
  expect_same_bits(both.z.narrow(0, 1, 1), alone.z);
}

TEST_P(Properties, StrengthZeroIsStandardAttention) {
  for (const bool causal : {false, true}) {
    const Case c = square_case(10, {.is_causal = causal, .strength = 0});
    const Tensor expected = at::scaled_dot_product_attention(
        c.q, c.k.repeat_interleave(2, 1), c.v.repeat_interleave(2, 1), std::nullopt, 0, causal);
    expect_near(run(c).z, expected);
  }
}

TEST_P(Properties, StrengthZeroStillMeasuresTheOwnShare) {
  const Case c = square_case(11);
  Case standard = c;
  standard.options.strength = 0;
  expect_near(run(standard).c, run(c).c);
}

TEST_P(Properties, AZeroValueExcludesNothing) {
  Case c = square_case(12);
  c.v.select(2, 3).zero_();
  Case standard = c;
  standard.options.strength = 0;
  expect_same_bits(run(c).z.select(2, 3), run(standard).z.select(2, 3));
  const Result result = run_operator(c);
  EXPECT_TRUE(result.dv.isfinite().all().item<bool>());
}

TEST_P(Properties, HugeValuesStayFinite) {
  const double huge = std::ldexp(1.0, 90);  // its square is no fp32 number
  const Case c = square_case(13, {.is_causal = true});
  Case large = c;
  large.v = c.v * huge;
  const Result a = run_operator(c), b = run_operator(large);
  expect_near(b.z / huge, a.z);
  expect_near(b.c, a.c);
  expect_near(b.dv, a.dv, 4 * kClose);
}

TEST_P(Properties, GradientsStayFiniteWhereYAndItsOwnValueAreFarApart) {
  Case c = square_case(13, {.is_causal = true});
  c.v = c.v * 1e-12;
  c.v.select(2, 0).mul_(1e22);
  c.dz = c.dz * 1e6;
  const Result actual = run_operator(c), exact = run_reference(c.cast(at::kDouble));
  for (const auto part : {&Result::z, &Result::dq, &Result::dk, &Result::dv}) {
    const double largest = (exact.*part).abs().max().item<double>();
    expect_near((actual.*part).to(at::kDouble) / largest, exact.*part / largest, 1e-5);
  }
}

TEST_P(Properties, ARowWithoutAVisibleKeyIsZeroAndGivesNoGradient) {
  Case c = square_case(14);
  c.options.key_start = at::tensor({3, 0}, at::kLong);
  c.options.key_end = at::tensor({3, 7}, at::kLong);
  c.k.select(0, 0).fill_(INFINITY);
  c.v.select(0, 0).fill_(NAN);
  const Result result = run_operator(c);
  expect_same_bits(result.z.select(0, 0), zeros_of(result.z.select(0, 0)));
  expect_same_bits(result.c.select(0, 0), zeros_of(result.c.select(0, 0)));
  EXPECT_TRUE((result.lse.select(0, 0) == -INFINITY).all().item<bool>());
  for (const auto gradient : {&Result::dq, &Result::dk, &Result::dv}) {
    expect_near((result.*gradient).select(0, 0), zeros_of((result.*gradient).select(0, 0)), 0);
    EXPECT_TRUE((result.*gradient).isfinite().all().item<bool>());
  }
}

TEST_P(Properties, NothingInvisibleReachesAResult) {
  Case c = make_case({.queries = 4, .keys = 9}, 15, {.is_causal = true, .own_offset = 2});
  c = c.cast(at::kFloat);
  const Result expected = run_operator(c);
  for (const double poison : {double{NAN}, double{INFINITY}}) {
    c.k.narrow(2, 6, 3).fill_(poison);
    c.v.narrow(2, 6, 3).fill_(poison);
    expect_same(run_operator(c), expected, 0);
  }
}

TEST_P(Properties, ANanThatIsVisibleIsSeen) {
  for (const bool causal : {false, true}) {
    Case c = square_case(16, {.is_causal = causal});
    c.v.select(2, 3).fill_(NAN);
    const Tensor z = run(c).z;
    EXPECT_TRUE(z.narrow(2, 3, 4).isnan().all().item<bool>());
    EXPECT_EQ(z.narrow(2, 0, 3).isnan().any().item<bool>(), !causal);
  }
}

TEST_P(Properties, EmptyCallsGiveEmptyResults) {
  for (const Sizes& n : {Sizes{.batch = 0}, Sizes{.queries = 0}, Sizes{.queries = 0, .keys = 0}}) {
    const Case c = make_case(n, 17, {.is_causal = true}).cast(at::kFloat);
    const Result result = run_operator(c);
    EXPECT_EQ(result.z.sizes(), c.dz.sizes());
    EXPECT_EQ(result.lse.sizes(), c.dlse.sizes());
    expect_near(result.dk, zeros_of(c.k), 0);
    expect_near(result.dv, zeros_of(c.v), 0);
  }
}

TEST_P(Properties, EveryHeadDimensionWorks) {
  for (const std::int64_t dim : {1, 2, 7, 8, 33, 128, 256, 300}) {
    Sizes n;
    n.head_dim = n.value_dim = dim;
    const Case c = make_case(n, 18, {.is_causal = true}).cast(at::kFloat);
    SCOPED_TRACE(dim);
    expect_as_good_as_eager(c);
  }
}

TEST_P(Properties, DecodingOneTokenEqualsTheLastRowOfTheWhole) {
  const Case c = square_case(19, {.is_causal = true});
  const AttentionResult whole = run(c);
  const AttentionResult last = attention(c.q.narrow(2, 6, 1), c.k, c.v, c.options);
  expect_near(last.z, whole.z.narrow(2, 6, 1));
  expect_near(last.lse, whole.lse.narrow(2, 6, 1));
}

TEST_P(Properties, LearnedSinkTokensInFrontNeedNothingSpecial) {
  // Two extra keys and values in front: bottom-right alignment gives every query its own key.
  const Case c = make_case({.queries = 5, .keys = 7}, 20, {.is_causal = true}).cast(at::kFloat);
  const Tensor w = c.v.narrow(2, 2, 5).repeat_interleave(2, 1);
  const AttentionResult result = run(c);
  const Tensor along = (result.z * w).sum(-1);
  expect_near(along, zeros_of(along));
  EXPECT_GT(result.z.select(2, 0).abs().max().item<double>(), 0.01);
}

TEST_P(Properties, Bf16RoundsWithoutBias) {
  Sizes n;
  n.queries = n.keys = 64, n.head_dim = n.value_dim = 32;
  const Case c = make_case(n, 21, {.strength = 0.5}).cast(at::kBFloat16);
  const Tensor z = run(c).z.to(at::kDouble), exact = run_reference(c).z;
  // Truncation would shrink every value by a quarter of a per cent on average.
  const double bias =
      ((z - exact) * exact.sign()).mean().item<double>() / exact.abs().mean().item<double>();
  EXPECT_LT(std::abs(bias), 2e-4);
}

}  // namespace
}  // namespace xsa::op::testing
