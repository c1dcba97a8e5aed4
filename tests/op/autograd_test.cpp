// How the derivative behaves beside its values, which composite_test and cpu_test check.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/op/cases.h"
#include "tests/support/compare.h"

namespace xsa::op::testing {
namespace {

using at::Tensor;
using torch::autograd::grad;

struct Call {
  Case c = make_case({}, 1, {.is_causal = true}).cast(at::kFloat);
  Tensor q = c.q.requires_grad_(), k = c.k.requires_grad_(), v = c.v.requires_grad_();
  AttentionResult out = attention(q, k, v, c.options);
};

TEST(Autograd, ZAndLseAreDifferentiableAndCIsNot) {
  const Call call;
  EXPECT_TRUE(call.out.z.requires_grad());
  EXPECT_TRUE(call.out.lse.requires_grad());
  EXPECT_FALSE(call.out.c.requires_grad());
}

TEST(Autograd, RecordsNothingWithoutNeed) {
  const Case c = make_case({}, 1).cast(at::kFloat);
  EXPECT_FALSE(attention(c.q, c.k, c.v).z.requires_grad());
  const at::AutoGradMode no_grad(false);
  EXPECT_FALSE(attention(c.q.requires_grad_(), c.k, c.v).z.requires_grad());
}

TEST(Autograd, GradientsOfZAndOfLseAddUp) {
  Call call;
  const std::vector<Tensor> inputs = {call.q, call.k, call.v};
  const auto of_z = grad({call.out.z}, inputs, {call.c.dz}, true);
  const auto of_lse = grad({call.out.lse}, inputs, {call.c.dlse}, true);
  const auto of_both = grad({call.out.z, call.out.lse}, inputs, {call.c.dz, call.c.dlse});
  for (int n = 0; n < 3; ++n)
    EXPECT_TRUE(xsa::testing::is_near(values(of_z[n] + of_lse[n]), values(of_both[n]), 1e-5));
}

TEST(Autograd, OnlyWhatNeedsAGradientGetsOne) {
  const Case c = make_case({}, 1).cast(at::kFloat);
  const Tensor k = c.k.requires_grad_();
  attention(c.q, k, c.v).z.sum().backward();
  EXPECT_TRUE(k.grad().defined());
  EXPECT_FALSE(c.q.grad().defined());
}

TEST(Autograd, ASecondDerivativeIsRefusedWhereItIsAskedFor) {
  Call call;
  const auto first = grad({call.out.z}, {call.q}, {call.c.dz}, true, true);
  EXPECT_TRUE(first[0].requires_grad());
  try {
    grad({first[0].sum()}, {call.q});
    FAIL() << "no error";
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("xsa::attention has no second derivative"));
  }
}

TEST(Autograd, ASecondBackwardNeedsRetainGraph) {
  Call call;
  grad({call.out.z}, {call.q}, {call.c.dz});
  EXPECT_THROW(grad({call.out.z}, {call.q}, {call.c.dz}), c10::Error);
}

TEST(Autograd, AnInputChangedInPlaceIsRefused) {
  Call call;
  {
    const at::AutoGradMode no_grad(false);
    call.v.add_(1);
  }
  EXPECT_THROW(grad({call.out.z}, {call.q}, {call.c.dz}), c10::Error);
}

TEST(Autograd, LearnedOptionsKeepTheirType) {
  const Case c = make_case({}, 1).cast(at::kBFloat16);
  AttentionOptions options;
  const Tensor strength = at::ones({4}, at::kFloat).requires_grad_();
  const Tensor sinks = at::zeros({4}, at::kDouble).requires_grad_();
  options.learned_strength = strength;
  options.sink_logits = sinks;
  attention(c.q, c.k, c.v, options).z.sum().backward();
  EXPECT_EQ(strength.grad().scalar_type(), at::kFloat);
  EXPECT_EQ(sinks.grad().scalar_type(), at::kDouble);
}

}  // namespace
}  // namespace xsa::op::testing
