#include "xsa/train/optimizer.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "xsa/base/error.h"
#include "xsa/base/rng.h"

namespace xsa::train {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

at::Tensor normal(std::vector<std::int64_t> shape, Rng& rng) {
  const at::Tensor tensor = at::zeros(shape);
  float* values = tensor.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] = static_cast<float>(rng.normal());
  return tensor;
}

/// AdamW as its paper says it (algorithm 2, with decay scaled by the learning rate), one parameter.
struct HandWrittenAdamW {
  const TrainConfig& config;
  double decay, weight, m = 0, v = 0;
  int t = 0;

  void update(double g, double lr) {
    ++t;
    weight -= lr * decay * weight;
    m = config.beta1 * m + (1 - config.beta1) * g;
    v = config.beta2 * v + (1 - config.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(config.beta1, t));
    const double v_hat = v / (1 - std::pow(config.beta2, t));
    weight -= lr * m_hat / (std::sqrt(v_hat) + config.adam_eps);
  }
};

TEST(AdamW, FollowsOneWrittenByHandInDouble) {
  TrainConfig config;
  config.weight_decay = 0.3;
  Rng rng(1);
  const std::vector<model::NamedTensor> parameters = {{"matrix", normal({5, 7}, rng), true},
                                                      {"vector", normal({19}, rng), false}};
  std::vector<HandWrittenAdamW> expected;
  for (const auto& [name, tensor, decay] : parameters)
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      expected.push_back({config, decay ? 0.3 : 0.0, tensor.const_data_ptr<float>()[i]});

  AdamW optimizer(parameters, config);
  for (int step = 0; step < 50; ++step) {
    const double lr = 1e-2 / (1 + step);
    std::size_t element = 0;
    for (const model::NamedTensor& parameter : parameters) {
      const at::Tensor gradient = normal(parameter.tensor.sizes().vec(), rng);
      for (std::int64_t i = 0; i < gradient.numel(); ++i)
        expected[element++].update(gradient.const_data_ptr<float>()[i], lr);
      parameter.tensor.mutable_grad() = gradient;
    }
    optimizer.update(lr);
  }
  std::size_t element = 0;
  for (const model::NamedTensor& parameter : parameters) {
    for (std::int64_t i = 0; i < parameter.tensor.numel(); ++i) {
      const double weight = expected[element++].weight;
      const double roundings = 50 * 2 * 0x1p-24;  // 50 steps round the weight twice each
      EXPECT_NEAR(parameter.tensor.const_data_ptr<float>()[i], weight,
                  roundings * std::max(1.0, std::abs(weight)));
    }
  }
}

TEST(AdamW, DecaysOnlyWhatIsMarked) {
  TrainConfig config;
  config.weight_decay = 0.5;
  const std::vector<model::NamedTensor> parameters = {{"matrix", at::full({2, 2}, 4.0f), true},
                                                      {"vector", at::full({2}, 4.0f), false}};
  for (const model::NamedTensor& parameter : parameters)
    parameter.tensor.mutable_grad() = at::zeros(parameter.tensor.sizes());
  AdamW(parameters, config).update(0.1);
  EXPECT_TRUE(at::equal(parameters[0].tensor, at::full({2, 2}, 4.0f * 0.95f)));
  EXPECT_TRUE(at::equal(parameters[1].tensor, at::full({2}, 4.0f)));
}

TEST(L2Norm, AgreesWithASumInDouble) {
  Rng rng(2);
  std::vector<at::Tensor> tensors;
  double squares = 0;
  for (const std::int64_t count : {1, 7, 8, 9, 100'003}) {
    tensors.push_back(normal({count}, rng));
    for (std::int64_t i = 0; i < count; ++i)
      squares += std::pow(static_cast<double>(tensors.back().const_data_ptr<float>()[i]), 2);
  }
  EXPECT_NEAR(l2_norm(tensors), std::sqrt(squares), 1e-10 * std::sqrt(squares));
  EXPECT_EQ(l2_norm({}), 0);
}

TEST(L2Norm, IsFiniteExactlyIfEveryElementIs) {
  const at::Tensor values = at::full({20'000}, std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isfinite(l2_norm({values})));
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const std::int64_t place : {0, 17'000, 19'999}) {
      const at::Tensor poisoned = values.clone();
      poisoned.mutable_data_ptr<float>()[place] = bad;
      EXPECT_FALSE(std::isfinite(l2_norm({at::zeros({3}), poisoned}))) << bad << " at " << place;
    }
  }
}

}  // namespace
}  // namespace xsa::train
