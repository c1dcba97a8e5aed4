#include "xsa/model/linear.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/tolerance.h"

namespace xsa::model {
namespace {

/// Every product that operator() may choose: of few rows, of many, of many and large.
TEST(DecoderLinear, EqualsTheDoubleProductForAnyNumberOfRows) {
  at::manual_seed(3);
  constexpr std::int64_t kInputs = 1030, kOutputs = 1500;
  const at::Tensor weight = at::randn({kOutputs, kInputs}), bias = at::randn({kOutputs});
  for (const std::int64_t rows : {1, 32, 33, 100, 180})
    for (const at::Tensor& added : {bias, at::Tensor()}) {
      const at::Tensor x = at::randn({rows, kInputs});
      const at::Tensor expected = at::linear(x.to(at::kDouble), weight.to(at::kDouble),
                                             added.defined() ? added.to(at::kDouble) : added);
      const at::Tensor difference = (Linear{weight, added}(x)-expected).abs().max();
      EXPECT_LE(difference.item<double>(), testing::linear_tolerance(kInputs)) << rows << " rows";
    }
}

TEST(DecoderLinear, TakesAPartOfAWeightsRows) {
  const at::Tensor weight = at::randn({4000, 512}), x = at::randn({200, 512});
  const at::Tensor part = Linear{weight.narrow(0, 0, 3000), {}}(x);
  const at::Tensor expected =
      at::linear(x.to(at::kDouble), weight.to(at::kDouble)).narrow(1, 0, 3000);
  EXPECT_LE((part - expected).abs().max().item<double>(), testing::linear_tolerance(512));
}

}  // namespace
}  // namespace xsa::model
