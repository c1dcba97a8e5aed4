// xsa::exclude against both oracles, on every path: the double reference, and the paper's two lines
// in plain PyTorch operators with automatic differentiation.
#include "xsa/op/exclude.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/op/cases.h"
#include "tests/support/compare.h"
#include "tests/support/tolerance.h"
#include "xsa/kernels/exclude.h"
#include "xsa/op/backend.h"
#include "xsa/op/exclude_signature.h"
#include "xsa/op/kernel_call.h"
#include "xsa/op/tensors.h"

namespace xsa::op::testing {
namespace {

using at::Tensor;
using ::testing::HasSubstr;
using torch::autograd::grad;
using xsa::testing::is_near;
using xsa::testing::same_bits;

/// B 2, H 4, K 2, T 6, S 9, Dv 21.
struct Call {
  Tensor y, v, dz;
  ExcludeOptions options;
};

Call make_call(const ExcludeOptions& options = {}) {
  at::manual_seed(3);
  return {at::randn({2, 4, 6, 21}, at::kDouble), at::randn({2, 2, 9, 21}, at::kDouble),
          at::randn({2, 4, 6, 21}, at::kDouble), options};
}

Call cast(Call call, at::ScalarType type) {
  for (Tensor* tensor : {&call.y, &call.v, &call.dz}) *tensor = tensor->to(type);
  return call;
}

struct Result {
  Tensor z, c, dy, dv, dstrength;
};

template <class Compute>
Result differentiated(const Call& call, const Compute& compute) {
  const Tensor y = call.y.detach().requires_grad_(), v = call.v.detach().requires_grad_();
  ExcludeOptions options = call.options;
  std::vector<Tensor> inputs = {y, v};
  if (options.learned_strength) {
    options.learned_strength = options.learned_strength->detach().requires_grad_();
    inputs.push_back(*options.learned_strength);
  }
  const auto [z, c] = compute(y, v, options);
  auto gradients = grad({z}, inputs, {call.dz}, std::nullopt, false, true);
  gradients.resize(3);
  for (std::size_t n = 0; n < inputs.size(); ++n)  // at strength 0, v takes no part
    if (!gradients[n].defined()) gradients[n] = at::zeros_like(inputs[n]);
  return {z.detach(), c.detach(), gradients[0], gradients[1], gradients[2]};
}

Result run_operator(const Call& call) {
  return differentiated(call, [](const Tensor& y, const Tensor& v, const ExcludeOptions& options) {
    const ExcludeResult out = exclude(y, v, options);
    return std::pair{out.z, out.c};
  });
}

/// normalize, subtract the projection.
Result run_eager(const Call& call) {
  return differentiated(call, [](const Tensor& y, const Tensor& v, const ExcludeOptions& o) {
    const Tensor w = v.repeat_interleave(y.size(1) / v.size(1), 1)
                         .narrow(2, own_offset_of(y, v, o.own_offset), y.size(2));
    const Tensor length = at::linalg_vector_norm(w, 2, at::IntArrayRef{-1}, true).clamp_min(o.eps);
    const Tensor unit = w / length, along = (y * unit).sum(-1, true);
    Tensor a = at::scalar_tensor(o.strength, y.options());
    if (o.learned_strength) a = o.learned_strength->to(y.scalar_type());
    if (a.dim() == 1) a = a.view({1, -1, 1});
    if (a.dim() == 3) a = a.unsqueeze(-1);
    return std::pair{y - a * along * unit, (along / length).squeeze(-1)};
  });
}

Result run_reference(const Call& call) {
  const Tensor y = call.y.contiguous(), v = call.v.contiguous(), dz = call.dz.contiguous();
  kernels::ExcludeParams p;
  p.batch = y.size(0), p.query_heads = y.size(1), p.queries = y.size(2), p.value_dim = y.size(3);
  p.key_heads = v.size(1), p.keys = v.size(2);
  p.type = kernel_type(y.scalar_type());
  p.y = kernel_view(y), p.v = kernel_view(v), p.dz = kernel_view(dz);
  p.strength = call.options.strength, p.eps = call.options.eps;
  p.own_offset = own_offset_of(y, v, call.options.own_offset);
  Tensor a;
  if (call.options.learned_strength) {
    a = call.options.learned_strength->to(at::kFloat).contiguous();
    p.learned_strength = a.const_data_ptr<float>();
    if (a.dim() == 1) p.learned_strength_stride = {0, 1, 0};
    if (a.dim() == 3) p.learned_strength_stride = {p.query_heads * p.queries, p.queries, 1};
  }
  const kernels::ReferenceExclude out = kernels::reference_exclude(p);
  const kernels::ReferenceExcludeBackward gradients = kernels::reference_exclude_backward(p);
  const auto shaped = [](const std::vector<double>& numbers, at::IntArrayRef sizes) {
    return at::tensor(numbers, at::kDouble).view(sizes);
  };
  const at::IntArrayRef rows = y.sizes().slice(0, 3);
  Tensor dstrength;
  if (a.defined()) {
    dstrength = shaped(gradients.dlearned_strength, rows);
    if (a.dim() == 0) dstrength = dstrength.sum();
    if (a.dim() == 1) dstrength = dstrength.sum(at::IntArrayRef{0, 2});
  }
  return {shaped(out.z, y.sizes()), shaped(out.c, rows), shaped(gradients.dy, y.sizes()),
          shaped(gradients.dv, v.sizes()), dstrength};
}

constexpr std::pair<const char*, Tensor Result::*> kAll[] = {{"z", &Result::z},
                                                             {"c", &Result::c},
                                                             {"dy", &Result::dy},
                                                             {"dv", &Result::dv},
                                                             {"dstrength", &Result::dstrength}};

double largest(const Tensor& x) { return x.numel() ? x.abs().max().item<double>() : 0; }

/// Double: within 1e-12. Other types: at most twice eager's error, and a floor.
void expect_as_good_as_eager(const Call& call) {
  const Result actual = run_operator(call), eager = run_eager(call), exact = run_reference(call);
  for (const auto& [name, part] : kAll) {
    ASSERT_EQ((actual.*part).defined(), (exact.*part).defined()) << name;
    if (!(exact.*part).defined()) continue;
    ASSERT_EQ((actual.*part).sizes(), (exact.*part).sizes()) << name;
    const double error = largest((eager.*part).to(at::kDouble) - exact.*part);
    const kernels::Type type = kernel_type(call.y.scalar_type());
    const double size = largest(exact.*part);
    const double tolerance = type == kernels::Type::kFloat64
                                 ? 1e-12 * std::max(1.0, size)
                                 : xsa::testing::beside_eager(error, size, 1.0, type);
    EXPECT_TRUE(is_near(values(actual.*part), values(exact.*part), tolerance)) << name;
    if (type == kernels::Type::kFloat64) {
      EXPECT_LE(error, tolerance) << name;
    }
  }
}

std::vector<std::pair<const char*, Call>> calls() {
  at::manual_seed(4);
  // float32 values (the reference reads float32), so that the gradient comes in double.
  const auto learned = [](at::IntArrayRef sizes) {
    return at::randn(sizes, at::kFloat).to(at::kDouble);
  };
  Call group = make_call();
  group.v = group.v.narrow(1, 0, 1);
  Call plain = make_call();
  plain.v = plain.v.repeat_interleave(2, 1);
  return {{"none", make_call()},
          {"strength 0", make_call({.strength = 0})},
          {"strength -1.5", make_call({.strength = -1.5})},
          {"learned scalar", make_call({.learned_strength = learned({})})},
          {"learned [H]", make_call({.learned_strength = learned({4})})},
          {"learned [B, H, T]", make_call({.learned_strength = learned({2, 4, 6})})},
          {"own_offset", make_call({.own_offset = 1})},
          {"eps decides", make_call({.eps = 6.0})},
          {"one value head", group},
          {"no groups", plain}};
}

class ExcludeOperator : public ::testing::TestWithParam<const char*> {
  BackendScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Paths, ExcludeOperator, ::testing::Values("composite", "auto"),
                         [](const auto& path) { return path.param; });

TEST_P(ExcludeOperator, EqualsBothOraclesForEveryOptionAndType) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf})
    for (const auto& [name, call] : calls()) {
      SCOPED_TRACE(c10::str(name, " ", type));
      expect_as_good_as_eager(cast(call, type));
    }
}

TEST_P(ExcludeOperator, GivesWhatTheAttentionOperatorGives) {
  for (const bool causal : {true, false}) {
    const Case c = make_case({}, 7, {.is_causal = causal, .strength = 0}).cast(at::kFloat);
    const Tensor y = attention(c.q, c.k, c.v, c.options).z;
    const AttentionResult whole = attention(c.q, c.k, c.v, {.is_causal = causal, .strength = 0.7});
    const ExcludeResult alone = exclude(y, c.v, {.strength = 0.7});
    EXPECT_TRUE(is_near(values(alone.z), values(whole.z), 2e-6));
    EXPECT_TRUE(is_near(values(alone.c), values(whole.c), 2e-5));
  }
}

TEST_P(ExcludeOperator, TakesAnyStridesAndExpandedInputs) {
  const Call call = cast(make_call(), at::kFloat);
  const Result expected = run_operator(call);
  const auto heads_in_tokens = [](const Tensor& x) {
    return x.transpose(1, 2).contiguous().transpose(1, 2);
  };
  const auto every_other = [](const Tensor& x) {
    return at::stack({x, at::full_like(x, NAN)}, -1).select(-1, 0);
  };
  Call tokens{heads_in_tokens(call.y), heads_in_tokens(call.v), heads_in_tokens(call.dz), {}};
  Call apart{every_other(call.y), every_other(call.v), every_other(call.dz), {}};
  for (const Call& other : {tokens, apart}) {
    const Result actual = run_operator(other);
    for (const auto part : {&Result::z, &Result::c, &Result::dy, &Result::dv})
      EXPECT_TRUE(same_bits(values(actual.*part), values(expected.*part)));
  }
  Call expanded{call.y.narrow(0, 0, 1).expand({2, 4, 6, 21}), call.v, call.dz, {}};
  expanded.v = call.v.narrow(3, 0, 1).expand({2, 2, 9, 21});
  expect_as_good_as_eager(expanded);
}

TEST_P(ExcludeOperator, LaysOutResultsAndGradientsAsTheInputs) {
  const Call call = cast(make_call(), at::kFloat);
  EXPECT_TRUE(run_operator(call).z.is_contiguous());
  Call tokens = call;
  tokens.y = call.y.transpose(1, 2).contiguous().transpose(1, 2);
  const Result result = run_operator(tokens);
  EXPECT_TRUE(result.z.transpose(1, 2).is_contiguous());
  EXPECT_TRUE(result.dy.transpose(1, 2).is_contiguous());
  EXPECT_TRUE(result.dv.is_contiguous());
}

TEST_P(ExcludeOperator, StrengthZeroIsYToTheBit) {
  const Call call = cast(make_call({.strength = 0}), at::kBFloat16);
  const Result result = run_operator(call);
  EXPECT_TRUE(same_bits(values(result.z), values(call.y)));
  EXPECT_TRUE(same_bits(values(result.dy), values(call.dz)));
  EXPECT_EQ(largest(result.dv), 0);
  EXPECT_GT(largest(result.c), 0);
}

TEST_P(ExcludeOperator, HugeAndZeroValuesStayFinite) {
  for (const double size : {1e30, 0.0}) {
    Call call = cast(make_call(), at::kFloat);
    call.v = call.v * size;
    const Result result = run_operator(call);
    for (const auto part : {&Result::z, &Result::dy, &Result::dv})
      EXPECT_TRUE((result.*part).isfinite().all().item<bool>()) << size;
    if (size == 0) {
      EXPECT_TRUE(same_bits(values(result.z), values(call.y)));
    }
  }
}

TEST_P(ExcludeOperator, GradientsHoldWhereYAndItsOwnValueAreFarApart) {
  struct Scales {
    double y, v, dz;
  };
  for (const auto& [y, v, dz] : std::vector<Scales>{
           {1e15, 1e-12, 1}, {1e-15, 1e14, 1}, {1e25, 1e-12, 1e-10}, {1e-10, 1e-14, 1e-25}}) {
    Call call = make_call();
    call.y = call.y * y, call.v = call.v * v, call.dz = call.dz * dz;
    call = cast(call, at::kFloat);
    const Result actual = run_operator(call), exact = run_eager(cast(call, at::kDouble));
    for (const auto part : {&Result::z, &Result::dy, &Result::dv})
      EXPECT_TRUE(is_near(values(actual.*part), values(exact.*part), 1e-5 * largest(exact.*part)))
          << y << " " << v << " " << dz;
  }
}

TEST_P(ExcludeOperator, EmptyCallsGiveEmptyResults) {
  for (const auto& [batch, queries, keys] :
       std::vector<std::array<std::int64_t, 3>>{{0, 6, 9}, {2, 0, 9}, {2, 0, 0}}) {
    const Call call{at::ones({batch, 4, queries, 5}),
                    at::ones({batch, 2, keys, 5}),
                    at::ones({batch, 4, queries, 5}),
                    {}};
    const Result result = run_operator(call);
    EXPECT_EQ(result.z.sizes(), call.y.sizes());
    EXPECT_EQ(result.dv.sizes(), call.v.sizes());
    EXPECT_EQ(largest(result.dv), 0);
  }
}

TEST(ExcludeAutograd, ZIsDifferentiableAndCIsNot) {
  const Call call = cast(make_call(), at::kFloat);
  EXPECT_FALSE(exclude(call.y, call.v).z.requires_grad());
  const ExcludeResult out = exclude(call.y.requires_grad_(), call.v);
  EXPECT_TRUE(out.z.requires_grad());
  EXPECT_FALSE(out.c.requires_grad());
}

TEST(ExcludeAutograd, ASecondDerivativeIsRefusedWhereItIsAskedFor) {
  const Call call = cast(make_call(), at::kFloat);
  const Tensor y = call.y.requires_grad_();
  const auto first = grad({exclude(y, call.v).z.square().sum()}, {y}, {}, true, true);
  EXPECT_TRUE(first[0].requires_grad());
  try {
    grad({first[0].sum()}, {y});
    FAIL() << "no error";
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("xsa::exclude has no second derivative"));
  }
}

TEST(ExcludeAutograd, YMayBeChangedAfterwardsAndZMayNot) {
  for (const bool change_y : {true, false}) {
    const Call call = cast(make_call(), at::kFloat);
    const Tensor leaf = call.y.requires_grad_(), y = leaf * 2;
    const Tensor z = exclude(y, call.v).z;
    {
      const at::AutoGradMode no_grad(false);
      (change_y ? y : z).add_(1);
    }
    if (change_y) {
      EXPECT_NO_THROW(grad({z}, {leaf}, {call.dz}));
    } else {
      EXPECT_THROW(grad({z}, {leaf}, {call.dz}), c10::Error);
    }
  }
}

TEST(ExcludeAutograd, ALearnedStrengthKeepsItsType) {
  const Call call = cast(make_call(), at::kBFloat16);
  const Tensor strength = at::ones({4}, at::kDouble).requires_grad_();
  exclude(call.y, call.v, {.learned_strength = strength}).z.sum().backward();
  EXPECT_EQ(strength.grad().scalar_type(), at::kDouble);
}

struct Wrong {
  const char* name;
  void (*change)(Call& call);
  const char* expected;
};
const Wrong kWrong[] = {
    {"Rank", [](Call& c) { c.y = c.y[0]; }, "y: expected 4 dimensions [B, H, T, Dv]"},
    {"Sparse", [](Call& c) { c.v = c.v.to_sparse(); }, "v: expected a strided (dense) tensor"},
    {"Type", [](Call& c) { c.v = c.v.to(at::kHalf); }, "v: expected type and device of y, Float"},
    {"Integers", [](Call& c) { c.y = c.y.to(at::kInt), c.v = c.v.to(at::kInt); },
     "y: expected float32, float64, bfloat16 or float16"},
    {"Device", [](Call& c) { c.v = c.v.to(at::kMeta); }, "v: expected type and device of y"},
    {"Batch", [](Call& c) { c.v = c.v.narrow(0, 0, 1); },
     "v: expected B = 2 in dimension 0 as in y, got [1, 2, 9, 21] Float on cpu"},
    {"ValueDim", [](Call& c) { c.v = c.v.narrow(3, 0, 4); }, "v: expected Dv = 21"},
    {"NoDim", [](Call& c) { c.v = c.v.narrow(3, 0, 0), c.y = c.y.narrow(3, 0, 0); },
     "v: expected a head dimension Dv of at least 1"},
    {"NoHeads", [](Call& c) { c.v = c.v.narrow(1, 0, 0); }, "v: expected at least 1 head"},
    {"Group", [](Call& c) { c.y = c.y.narrow(1, 0, 3); },
     "y: expected H to be a multiple of K = 2"},
    {"FewKeys", [](Call& c) { c.v = c.v.narrow(2, 0, 5); }, "v: expected S >= T = 6, got S = 5"},
    {"OwnOffset", [](Call& c) { c.options.own_offset = 4; },
     "own_offset: expected own_offset + T <= S = 9 (query i owns value own_offset + i), got 4 + 6"},
    {"OwnOffsetNegative", [](Call& c) { c.options.own_offset = -1; },
     "own_offset: expected at least 0, got -1"},
    {"Strength", [](Call& c) { c.options.strength = NAN; },
     "strength: expected a finite float32 number, got nan"},
    {"Eps", [](Call& c) { c.options.eps = 0; }, "eps: expected a finite number >= 1e-18, got 0"},
    {"StrengthShape", [](Call& c) { c.options.learned_strength = at::ones({3}); },
     "learned_strength: expected a scalar, [H] = [4] or [B, H, T] = [2, 4, 6], got [3]"},
    {"StrengthType", [](Call& c) { c.options.learned_strength = at::ones({4}, at::kInt); },
     "learned_strength: expected a floating-point tensor"},
};

class ExcludeRefused : public ::testing::TestWithParam<Wrong> {};
INSTANTIATE_TEST_SUITE_P(Checks, ExcludeRefused, ::testing::ValuesIn(kWrong),
                         [](const auto& wrong) { return wrong.param.name; });
TEST_P(ExcludeRefused, WithAReason) {
  Call call = cast(make_call(), at::kFloat);
  GetParam().change(call);
  try {
    exclude(call.y, call.v, call.options);
    FAIL() << "no error";
  } catch (const c10::ValueError& error) {
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr(GetParam().expected));
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("xsa::exclude: "));
  }
}

TEST(ExcludeChecks, RefuseGradientsOfAnotherCall) {
  const Call call = cast(make_call(), at::kFloat);
  const ExcludeResult out = exclude(call.y, call.v);
  const auto backward = [&](const Tensor& dz, const Tensor& c) {
    return call_exclude_backward({dz, call.v, out.z, c}, {});
  };
  EXPECT_NO_THROW(backward(call.dz, out.c));
  EXPECT_THROW(backward(call.dz.narrow(2, 0, 5), out.c), c10::ValueError);
  EXPECT_THROW(backward(call.dz, out.c.to(at::kDouble)), c10::ValueError);
}

TEST(ExcludeChecks, AForcedKernelNeverFallsBackInSilence) {
  const BackendScope scope("cpu_fused");
  const Call call = make_call();  // float64
  EXPECT_THROW(exclude(call.y, call.v), c10::NotImplementedError);
}

}  // namespace
}  // namespace xsa::op::testing
