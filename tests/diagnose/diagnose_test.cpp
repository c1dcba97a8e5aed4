#include "xsa/diagnose/diagnose.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <tuple>
#include <vector>

#include "tests/support/temp_folder.h"
#include "xsa/op/attention.h"

namespace xsa::diagnose {
namespace {

struct Direct {
  double value_cosine, attention_diagonal, output_value_cosine, final_value_cosine;
};

/// Fig. 1 by its definition: the T x T map, every pair of values, in double.
Direct direct(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double strength) {
  const auto batch = q.size(0), heads = q.size(1), key_heads = k.size(1), length = q.size(2);
  const auto cosine = [](const at::Tensor& a, const at::Tensor& b) {
    const double norms = (a.norm() * b.norm()).item<double>();
    return norms == 0 ? 0.0 : (a * b).sum().item<double>() / norms;
  };
  Direct sums{};
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < key_heads; ++h) {
      double pairs = 0;
      for (std::int64_t i = 0; i < length; ++i) {
        for (std::int64_t j = 0; j < length; ++j) {
          if (i != j) pairs += cosine(v[b][h][i], v[b][h][j]);
        }
      }
      sums.value_cosine += pairs / static_cast<double>(length * (length - 1) * batch * key_heads);
    }
    for (std::int64_t h = 0; h < heads; ++h) {
      const at::Tensor values = v[b][h * key_heads / heads];
      at::Tensor scores = q[b][h].matmul(k[b][h * key_heads / heads].t()) / std::sqrt(q.size(3));
      scores = scores.masked_fill(at::ones_like(scores).triu(1).to(at::kBool), -INFINITY);
      const at::Tensor map = scores.softmax(-1), y = map.matmul(values);
      for (std::int64_t i = 0; i < length; ++i) {
        const at::Tensor w = values[i];
        const at::Tensor z = y[i] - strength * (y[i] * w).sum() / (w * w).sum() * w;
        const double count = static_cast<double>(batch * heads * length);
        sums.attention_diagonal += map[i][i].item<double>() / count;
        sums.output_value_cosine += cosine(y[i], w) / count;
        if (z.norm().item<double>() > 1e-9) sums.final_value_cosine += cosine(z, w) / count;
      }
    }
  }
  return sums;
}

class LayerSumsAgainstTheMap : public ::testing::TestWithParam<std::tuple<double, std::int64_t>> {};

TEST_P(LayerSumsAgainstTheMap, AgreeInEveryQuantity) {
  const auto [strength, key_heads] = GetParam();
  at::manual_seed(7);
  const at::Tensor q = 2 * at::randn({2, 4, 9, 6}), k = 2 * at::randn({2, key_heads, 9, 6});
  const at::Tensor v = at::randn({2, key_heads, 9, 5}) + 0.5;
  op::AttentionOptions options;
  options.is_causal = true;
  options.strength = strength;
  const op::AttentionResult result = op::attention(q, k, v, options);

  LayerSums sums;  // in two halves, as a diagnosis streams them
  for (const std::int64_t b : {0, 1}) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, b, 1); };
    sums.add(
        {0, strength, part(q), part(k), part(v), part(result.z), part(result.lse), part(result.c)});
  }
  const Json means = sums.means(0, strength);
  const Direct expected = direct(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble), strength);
  EXPECT_NEAR(means.at("value_cosine"), expected.value_cosine, 1e-6);
  EXPECT_NEAR(means.at("attention_diagonal"), expected.attention_diagonal, 1e-6);
  EXPECT_NEAR(means.at("output_value_cosine"), expected.output_value_cosine, 1e-6);
  EXPECT_NEAR(means.at("final_value_cosine"), expected.final_value_cosine, 1e-6);
  EXPECT_GT(std::abs(expected.output_value_cosine), 0.1) << "the case must tell something";
}

INSTANTIATE_TEST_SUITE_P(StrengthsAndGroups, LayerSumsAgainstTheMap,
                         ::testing::Combine(::testing::Values(0.0, 0.5, 1.0),
                                            ::testing::Values(4, 2, 1)));

TEST(LayerSums, OfZeroValuesAreZeroNotNaN) {
  const at::Tensor q = at::ones({1, 1, 3, 2}), zero = at::zeros({1, 1, 3, 2});
  const at::Tensor lse = at::zeros({1, 1, 3}), c = at::zeros({1, 1, 3});
  LayerSums sums;
  sums.add({0, 1.0, q, q, zero, zero, lse, c});
  const Json means = sums.means(0, 1.0);
  EXPECT_EQ(means.at("value_cosine"), 0.0);
  EXPECT_EQ(means.at("output_value_cosine"), 0.0);
  EXPECT_EQ(means.at("final_value_cosine"), 0.0);
}

TEST(LayerSums, DoNotHideNaN) {
  const at::Tensor x = at::full({1, 1, 3, 2}, NAN), row = at::full({1, 1, 3}, NAN);
  LayerSums sums;
  sums.add({0, 1.0, x, x, x, x, row, row});
  const Json means = sums.means(0, 1.0);
  for (const char* name :
       {"value_cosine", "attention_diagonal", "output_value_cosine", "final_value_cosine"}) {
    EXPECT_TRUE(std::isnan(means.at(name).get<double>())) << name;
  }
}

TEST(LayerSums, OfOneTokenHaveNoPairsOfValues) {
  const at::Tensor x = at::ones({1, 1, 1, 2});
  op::AttentionOptions options;
  options.is_causal = true;
  const op::AttentionResult result = op::attention(x, x, x, options);
  LayerSums sums;
  sums.add({0, 1.0, x, x, x, result.z, result.lse, result.c});
  const Json means = sums.means(0, 1.0);
  EXPECT_TRUE(means.at("value_cosine").is_null());
  EXPECT_NEAR(means.at("attention_diagonal"), 1.0, 1e-6);
  EXPECT_NEAR(means.at("output_value_cosine"), 1.0, 1e-6);
  EXPECT_EQ(means.at("final_value_cosine"), 0.0);
}

class Diagnose : public ::testing::Test {
 protected:
  Diagnose() {
    std::vector<text::Token> tokens;
    for (text::Token i = 0; i < 500; ++i) tokens.push_back(i * i % 50);
    path_ = folder_ / "shard.bin";
    data::write_shard(path_, tokens);
    config_.layers = 2;
    config_.width = 16;
    config_.heads = 2;
    config_.head_dim = 8;
    config_.context = 12;
    config_.vocab_size = 50;
  }
  model::ModelConfig config_;
  xsa::testing::TempFolder folder_;
  std::filesystem::path path_;
};

TEST_F(Diagnose, FindsNothingLeftAlongTheOwnValueWhereALayerIsExclusive) {
  config_.exclusive_layers = "last 1";
  const data::TokenStream stream({path_});
  const Json result = diagnose(model::Gpt(config_, 1), stream, {.sequences = 5, .batch_size = 2});
  ASSERT_EQ(result.at("layers").size(), 2u);
  EXPECT_EQ(result["layers"][0]["final_value_cosine"], result["layers"][0]["output_value_cosine"]);
  EXPECT_NEAR(result["layers"][1]["final_value_cosine"], 0.0, 1e-5);
  EXPECT_GT(std::abs(result["layers"][1]["output_value_cosine"].get<double>()), 1e-2);
}

TEST_F(Diagnose, DoesNotDependOnTheBatchSize) {
  const data::TokenStream stream({path_});
  const model::Gpt model(config_, 1);
  const Json one = diagnose(model, stream, {.sequences = 5, .batch_size = 1});
  const Json all = diagnose(model, stream, {.sequences = 5, .batch_size = 8});
  for (const char* name : {"value_cosine", "attention_diagonal", "output_value_cosine"}) {
    EXPECT_NEAR(one["layers"][1][name], all["layers"][1][name], 1e-5) << name;
  }
}

TEST_F(Diagnose, RefusesATextShorterThanOneSequence) {
  config_.context = 501;
  const data::TokenStream stream({path_});
  EXPECT_THROW(diagnose(model::Gpt(config_, 1), stream, {}), UsageError);
}

}  // namespace
}  // namespace xsa::diagnose
