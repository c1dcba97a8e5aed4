// The operator against the double reference and against plain PyTorch operators with automatic
// differentiation.
#include "xsa/op/rotary_embedding.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/op/cases.h"
#include "tests/support/compare.h"
#include "tests/support/tolerance.h"
#include "xsa/kernels/rope.h"

namespace xsa::op::testing {
namespace {

using at::Tensor;
using xsa::testing::is_near;
using xsa::testing::rotary_tolerance;

constexpr std::int64_t kBatch = 2, kHeads = 3, kTokens = 11, kDim = 20, kPositions = 16;

struct Inputs {
  Inputs() {
    at::manual_seed(5);
    x = at::randn({kBatch, kTokens, kHeads, kDim}, at::kDouble).transpose(1, 2);
    const Tensor angle = 6 * at::rand({kPositions, kDim / 2}, at::kDouble);
    cos = angle.cos().to(at::kFloat), sin = angle.sin().to(at::kFloat);
  }
  Tensor x, cos, sin;
};

/// As complex numbers, in double.
Tensor eager(const Tensor& x, const Inputs& in, std::int64_t offset, bool inverse) {
  const Tensor wide = x.to(at::kDouble);
  const Tensor pair = at::complex(wide.narrow(3, 0, kDim / 2), wide.narrow(3, kDim / 2, kDim / 2));
  const Tensor sin = in.sin.to(at::kDouble) * (inverse ? -1 : 1);
  const Tensor turn = at::complex(in.cos.to(at::kDouble), sin).narrow(0, offset, x.size(2));
  return at::cat({at::real(pair * turn), at::imag(pair * turn)}, 3);
}

std::vector<double> reference(const Tensor& x, const Inputs& in, std::int64_t offset,
                              bool inverse) {
  const Tensor wide = x.to(at::kDouble).contiguous();
  kernels::RotaryParams params;
  params.batch = kBatch, params.heads = kHeads, params.tokens = kTokens, params.head_dim = kDim;
  params.type = kernels::Type::kFloat64;
  params.x = {wide.const_data_ptr(), {kHeads * kTokens * kDim, kTokens * kDim, kDim, 1}};
  params.cos = in.cos.const_data_ptr<float>() + offset * kDim / 2;
  params.sin = in.sin.const_data_ptr<float>() + offset * kDim / 2;
  params.inverse = inverse;
  return kernels::reference_rotary_embedding(params);
}

double tolerance(const Tensor& x) {
  const kernels::Type type = x.scalar_type() == at::kFloat      ? kernels::Type::kFloat32
                             : x.scalar_type() == at::kBFloat16 ? kernels::Type::kBFloat16
                             : x.scalar_type() == at::kHalf     ? kernels::Type::kFloat16
                                                                : kernels::Type::kFloat64;
  // Eager PyTorch rounds each product, the kernel one of the two: twice as much.
  return 2 * rotary_tolerance(x.abs().max().item<double>(), type);
}

TEST(RotaryEmbedding, EqualsBothOraclesOnEveryPathTypeAndDirection) {
  const Inputs in;
  for (const char* backend : {"auto", "composite"})
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf})
      for (const bool inverse : {false, true})
        for (const std::int64_t offset : {0, 5}) {
          SCOPED_TRACE(c10::str(backend, " ", type, inverse ? " inverse " : " ", offset));
          const BackendScope scope(backend);
          const Tensor x = in.x.to(type);
          const Tensor y = rotary_embedding(x, in.cos, in.sin, {offset, inverse});
          EXPECT_EQ(y.scalar_type(), type);
          EXPECT_TRUE(is_near(values(y), values(eager(x, in, offset, inverse)), tolerance(x)));
          EXPECT_TRUE(is_near(values(y), reference(x, in, offset, inverse), tolerance(x)));
        }
}

TEST(RotaryEmbedding, LaysOutItsResultAndGradientAsTheInput) {
  const Inputs in;
  const Tensor x = in.x.to(at::kFloat).requires_grad_();
  const Tensor y = rotary_embedding(x, in.cos, in.sin);
  EXPECT_EQ(y.strides(), x.strides());
  EXPECT_TRUE(rotary_embedding(x.contiguous(), in.cos, in.sin).is_contiguous());
}

TEST(RotaryEmbedding, TakesAnyStrides) {
  const Inputs in;
  const Tensor x = in.x.to(at::kFloat), y = rotary_embedding(x, in.cos, in.sin);
  const Tensor innermost = x.permute({3, 2, 1, 0}).contiguous().permute({3, 2, 1, 0});
  EXPECT_TRUE(at::equal(rotary_embedding(innermost, in.cos, in.sin), y));
  const Tensor wide_cos = at::stack({in.cos, in.cos}, 2).select(2, 1);
  EXPECT_TRUE(at::equal(rotary_embedding(x, wide_cos, in.sin), y));
  const Tensor one = x.narrow(2, 3, 1).expand({kBatch, kHeads, 4, kDim});
  EXPECT_TRUE(at::equal(rotary_embedding(one, in.cos, in.sin),
                        rotary_embedding(one.contiguous(), in.cos, in.sin)));
}

TEST(RotaryEmbedding, InPlaceAndIntoGiveTheSameBits) {
  const Inputs in;
  const Tensor x = in.x.to(at::kFloat), y = rotary_embedding(x, in.cos, in.sin, {.offset = 2});
  const Tensor innermost = x.permute({3, 2, 1, 0}).contiguous().permute({3, 2, 1, 0});
  for (const Tensor& memory : {x, x.contiguous()}) {
    const Tensor copy = memory.clone();
    rotary_embedding_into(copy, in.cos, in.sin, {.offset = 2}, copy);
    EXPECT_TRUE(at::equal(copy, y));
  }
  rotary_embedding_into(x, in.cos, in.sin, {.offset = 2}, innermost);
  EXPECT_TRUE(at::allclose(innermost, y));
}

TEST(RotaryEmbedding, HasTheGradientOfItsFormula) {
  const Inputs in;
  const Tensor dy = at::randn({kBatch, kHeads, kTokens, kDim}, at::kDouble);
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const Tensor x = in.x.detach().to(type).requires_grad_();
    const Tensor exact = x.detach().to(at::kDouble);
    exact.requires_grad_();
    rotary_embedding(x, in.cos, in.sin, {.offset = 3}).backward(dy.to(type));
    eager(exact, in, 3, false).backward(dy.to(type).to(at::kDouble));
    EXPECT_TRUE(is_near(values(x.grad()), values(exact.grad()), tolerance(dy.to(type))));
  }
}

TEST(RotaryEmbedding, ASecondDerivativeTurnsTheGradientOfTheGradient) {
  const Inputs in;
  const Tensor x = in.x.to(at::kFloat).requires_grad_();
  const Tensor dy = at::randn_like(x).requires_grad_(), ddx = at::randn_like(x);
  const Tensor y = rotary_embedding(x, in.cos, in.sin);
  const auto dx = torch::autograd::grad({y}, {x}, {dy}, true, true);
  const auto ddy = torch::autograd::grad({dx[0]}, {dy}, {ddx});
  EXPECT_TRUE(at::equal(ddy[0], rotary_embedding(ddx, in.cos, in.sin)));
}

TEST(RotaryEmbedding, RefusesWithAReasonAndARemedy) {
  const Inputs in;
  const Tensor x = in.x.to(at::kFloat);
  const auto message = [&](const auto& body) -> std::string {
    try {
      body();
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "no error";
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(message([&] { rotary_embedding(x[0], in.cos, in.sin); }),
              HasSubstr("x: expected 4 dimensions [B, H, T, D], got [3, 11, 20]"));
  EXPECT_THAT(message([&] { rotary_embedding(x.narrow(3, 0, 7), in.cos, in.sin); }),
              HasSubstr("even head dimension"));
  EXPECT_THAT(message([&] { rotary_embedding(x.to(at::kInt), in.cos, in.sin); }),
              HasSubstr("expected float32"));
  EXPECT_THAT(message([&] { rotary_embedding(x, in.cos, in.sin, {.offset = 6}); }),
              HasSubstr("expected offset + T = 6 + 11 rows or more"));
  EXPECT_THAT(message([&] { rotary_embedding(x, in.cos, in.sin, {.offset = -1}); }),
              HasSubstr("offset: expected at least 0, got -1"));
  EXPECT_THAT(message([&] { rotary_embedding(x, in.cos, in.sin.narrow(1, 0, 4)); }),
              HasSubstr("sin: expected D / 2 = 10 columns"));
  EXPECT_THAT(message([&] { rotary_embedding(x, in.cos.to(at::kDouble), in.sin); }),
              HasSubstr("cos: expected float32"));
  EXPECT_THAT(message([&] { rotary_embedding(x, in.cos.clone().requires_grad_(), in.sin); }),
              HasSubstr("cos and sin have no gradient"));
  EXPECT_THAT(message([&] { rotary_embedding_into(x, in.cos, in.sin, {}, x.narrow(2, 0, 3)); }),
              HasSubstr("out: expected sizes"));
  const BackendScope scope("cpu_fused");
  EXPECT_THAT(message([&] { rotary_embedding(in.x, in.cos, in.sin); }),
              HasSubstr("float64 has no fused kernel"));
}

TEST(RotaryEmbedding, TakesEmptyTensors) {
  const Inputs in;
  for (const char* backend : {"auto", "composite"}) {
    const BackendScope scope(backend);
    for (int dim = 0; dim < 3; ++dim)
      EXPECT_EQ(rotary_embedding(in.x.to(at::kFloat).narrow(dim, 0, 0), in.cos, in.sin).numel(), 0);
  }
}

}  // namespace
}  // namespace xsa::op::testing
