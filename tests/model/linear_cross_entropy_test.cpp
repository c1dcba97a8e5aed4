#include "xsa/model/linear_cross_entropy.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "tests/model/watched_memory.h"
#include "xsa/base/error.h"

namespace xsa::model {
namespace {

struct Case {
  at::Tensor hidden, weight, targets;
};

Case random_case(std::int64_t rows, std::int64_t vocabulary, at::ScalarType type,
                 double scale = 1) {
  at::manual_seed(3);
  Case result;
  result.hidden = (at::randn({rows, 16}, at::kDouble) * scale).to(type).requires_grad_();
  result.weight = at::randn({vocabulary, 16}, at::kDouble).to(type).requires_grad_();
  result.targets = at::randint(vocabulary, {rows}, at::kLong);
  return result;
}

Case in_double(const Case& other) {
  return {other.hidden.detach().to(at::kDouble).requires_grad_(),
          other.weight.detach().to(at::kDouble).requires_grad_(), other.targets};
}

at::Tensor expected_loss(const Case& c) {
  return at::cross_entropy_loss(at::linear(c.hidden, c.weight), c.targets, {}, at::Reduction::Sum,
                                -1);
}

double relative_error(const at::Tensor& got, const at::Tensor& expected) {
  EXPECT_TRUE(got.isfinite().all().item<bool>());
  return ((got.to(at::kDouble) - expected.to(at::kDouble)).norm() /
          (expected.to(at::kDouble).norm() + 1e-300))
      .item<double>();
}

/// Loss and gradients, the loss scaled by `factor` before backward, against at::cross_entropy in
/// double.
void expect_equal(const Case& c, std::int64_t chunk, double tolerance, double factor = 1) {
  const Case wide = in_double(c);
  const at::Tensor expected = expected_loss(wide) * factor;
  expected.backward();
  const at::Tensor loss = linear_cross_entropy_sum(c.hidden, c.weight, c.targets, chunk) * factor;
  loss.backward();
  EXPECT_LT(relative_error(loss, expected), tolerance);
  EXPECT_LT(relative_error(c.hidden.grad(), wide.hidden.grad()), tolerance);
  EXPECT_LT(relative_error(c.weight.grad(), wide.weight.grad()), tolerance);
}

TEST(LinearCrossEntropy, EqualsCrossEntropyInDouble) {
  expect_equal(random_case(40, 27, at::kDouble), 8, 1e-14);
}

TEST(LinearCrossEntropy, EqualsCrossEntropyInFloat) {
  expect_equal(random_case(40, 27, at::kFloat), 8, 1e-6);
}

TEST(LinearCrossEntropy, EqualsCrossEntropyWhateverThePieces) {
  for (const std::int64_t chunk : {1, 7, 39, 40, 41, 1000})
    expect_equal(random_case(40, 27, at::kDouble), chunk, 1e-14);
}

TEST(LinearCrossEntropy, ScalesItsGradientByTheLossesOwn) {
  expect_equal(random_case(40, 27, at::kDouble), 16, 1e-14, /*factor=*/-0.37);
}

TEST(LinearCrossEntropy, StaysFiniteForLoudLogits) {
  expect_equal(random_case(40, 27, at::kFloat, /*scale=*/1000), 16, 1e-6);
}

TEST(LinearCrossEntropy, LeavesIgnoredTargetsOut) {
  Case c = random_case(40, 27, at::kDouble);
  c.targets.narrow(0, 5, 20).fill_(-1);
  expect_equal(c, 8, 1e-14);
  EXPECT_TRUE(c.hidden.grad().narrow(0, 5, 20).eq(0).all().item<bool>());
}

TEST(LinearCrossEntropy, IsZeroWithoutAValidTarget) {
  Case c = random_case(12, 27, at::kFloat);
  c.targets.fill_(-1);
  const at::Tensor loss = linear_cross_entropy_sum(c.hidden, c.weight, c.targets, 5);
  loss.backward();
  EXPECT_EQ(loss.item<float>(), 0);
  EXPECT_TRUE(c.hidden.grad().eq(0).all().item<bool>());
  EXPECT_TRUE(c.weight.grad().eq(0).all().item<bool>());
}

TEST(LinearCrossEntropy, IsZeroWithoutRows) {
  Case c = random_case(0, 27, at::kFloat);
  const at::Tensor loss = linear_cross_entropy_sum(c.hidden, c.weight, c.targets, 5);
  loss.backward();
  EXPECT_EQ(loss.item<float>(), 0);
  EXPECT_TRUE(c.weight.grad().eq(0).all().item<bool>());
}

TEST(LinearCrossEntropy, SumsItsLossInFp32OrWider) {
  for (const auto& [type, expected] : {std::pair{at::kDouble, at::kDouble},
                                       {at::kFloat, at::kFloat},
                                       {at::kBFloat16, at::kFloat}}) {
    const Case c = random_case(12, 27, type);
    EXPECT_EQ(linear_cross_entropy_sum(c.hidden, c.weight, c.targets, 5).scalar_type(), expected);
  }
}

TEST(LinearCrossEntropy, TakesBFloat16WithASoftmaxInFp32) {
  expect_equal(random_case(40, 27, at::kBFloat16), 8, 2e-2);
}

TEST(LinearCrossEntropy, DifferentiatesOnlyWhatAsksForIt) {
  Case c = random_case(12, 27, at::kFloat);
  linear_cross_entropy_sum(c.hidden, c.weight.detach(), c.targets, 5).backward();
  EXPECT_TRUE(c.hidden.grad().defined());
  c = random_case(12, 27, at::kFloat);
  linear_cross_entropy_sum(c.hidden.detach(), c.weight, c.targets, 5).backward();
  EXPECT_TRUE(c.weight.grad().defined());
}

TEST(LinearCrossEntropy, HasTheSameBitsEachTime) {
  const Case c = random_case(100, 300, at::kFloat), d = random_case(100, 300, at::kFloat);
  const at::Tensor a = linear_cross_entropy_sum(c.hidden, c.weight, c.targets, 32);
  const at::Tensor b = linear_cross_entropy_sum(d.hidden, d.weight, d.targets, 32);
  a.backward(), b.backward();
  EXPECT_TRUE(at::equal(a, b));
  EXPECT_TRUE(at::equal(c.hidden.grad(), d.hidden.grad()));
  EXPECT_TRUE(at::equal(c.weight.grad(), d.weight.grad()));
}

TEST(LinearCrossEntropy, NeverHoldsMoreThanAChunkOfLogits) {
  constexpr std::int64_t kRows = 2048, kVocabulary = 10'000, kChunk = 8;
  const Case c = random_case(kRows, kVocabulary, at::kFloat);
  const std::int64_t chunk_bytes = kChunk * kVocabulary * 4;
  const std::int64_t gradient_bytes = (kRows + kVocabulary) * 16 * 4;
  const test::PeakMemory peak;
  linear_cross_entropy_sum(c.hidden, c.weight, c.targets, kChunk).backward();
  EXPECT_LT(peak.bytes(), chunk_bytes + gradient_bytes + 100'000);
  EXPECT_GT(peak.bytes(), chunk_bytes + gradient_bytes);
}

TEST(LinearCrossEntropy, HoldsNoGradientInEvaluation) {
  constexpr std::int64_t kRows = 2048, kVocabulary = 10'000, kChunk = 8;
  const Case c = random_case(kRows, kVocabulary, at::kFloat);
  const at::NoGradGuard guard;
  const test::PeakMemory peak;
  const at::Tensor loss = linear_cross_entropy_sum(c.hidden, c.weight, c.targets, kChunk);
  EXPECT_LT(peak.bytes(), kChunk * kVocabulary * 4 + 100'000);
  EXPECT_FALSE(loss.requires_grad());
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(LinearCrossEntropy, RefusesASecondBackwardAndASecondDerivative) {
  const Case c = random_case(12, 27, at::kFloat);
  const at::Tensor loss = linear_cross_entropy_sum(c.hidden, c.weight, c.targets, 5);
  EXPECT_THAT(refusal([&] { torch::autograd::grad({loss}, {c.hidden}, {}, true, true); }),
              testing::HasSubstr("create_graph"));
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_THAT(refusal([&] { loss.backward(); }), testing::HasSubstr("one backward a forward"));
}

TEST(LinearCrossEntropy, RefusesWhatDoesNotFit) {
  const Case c = random_case(12, 27, at::kFloat);
  const auto call = [&](const at::Tensor& hidden, const at::Tensor& weight,
                        const at::Tensor& targets, std::int64_t chunk) {
    return refusal([&] { linear_cross_entropy_sum(hidden, weight, targets, chunk); });
  };
  using testing::HasSubstr;
  EXPECT_THAT(call(c.hidden, c.weight.narrow(1, 0, 3), c.targets, 5),
              HasSubstr("got [12, 16] and [27, 3]"));
  EXPECT_THAT(call(c.hidden, c.weight.to(at::kDouble), c.targets, 5),
              HasSubstr("got Float and Double"));
  EXPECT_THAT(call(c.hidden, c.weight, c.targets.narrow(0, 0, 3), 5), HasSubstr("got [3]"));
  EXPECT_THAT(call(c.hidden, c.weight, c.targets.to(at::kInt), 5), HasSubstr("type Int"));
  EXPECT_THAT(call(c.hidden, c.weight, c.targets, 0), HasSubstr("at least 1 row, got 0"));
  EXPECT_THAT(call(c.hidden, c.weight, at::full({12}, 27, at::kLong), 5), HasSubstr("[0, 27)"));
  EXPECT_THAT(call(c.hidden, c.weight, at::full({12}, -2, at::kLong), 5), HasSubstr("got [-2"));
}

}  // namespace
}  // namespace xsa::model
