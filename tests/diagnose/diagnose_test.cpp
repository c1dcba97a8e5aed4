#include "xsa/diagnose/diagnose.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"
#include "xsa/op/attention.h"

namespace xsa::diagnose {
namespace {

/// One layer's attention: random q, k and v with `sinks` keys in front, through the operator.
struct Case {
  std::int64_t key_heads = 4, window = 0, sinks = 0;
  double strength = 1;
  bool sink_logits = false, packed = false;
  std::int64_t learned = 0;  // 0: no strength is, 1: one a head, 2: one a token and head

  static constexpr std::int64_t kBatch = 2, kHeads = 4, kLength = 9;
  at::Tensor q, k, v, logits, learned_strength, cu_seqlens;
  op::AttentionResult result;

  void run() {
    at::manual_seed(7);
    const std::int64_t batch = packed ? 1 : kBatch, length = packed ? kBatch * kLength : kLength;
    q = 2 * at::randn({batch, kHeads, length, 6});
    k = 2 * at::randn({batch, key_heads, sinks + length, 6});
    v = at::randn({batch, key_heads, sinks + length, 5}) + 0.5;
    op::AttentionOptions options;
    options.is_causal = true;
    options.strength = strength;
    options.num_sink_keys = sinks;
    if (window > 0) options.window = window;
    if (sink_logits) options.sink_logits = logits = at::randn({kHeads}) + 1;
    if (learned == 1) options.learned_strength = learned_strength = at::rand({kHeads});
    if (learned == 2)
      options.learned_strength = learned_strength = at::rand({batch, kHeads, length});
    if (packed) options.cu_seqlens = cu_seqlens = at::tensor({0, 1, 6, 9, 18}, at::kInt);
    result = op::attention(q, k, v, options);
  }

  /// What was measured of rows [begin, begin + count).
  model::AttentionTrace trace(std::int64_t begin, std::int64_t count) const {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
    return {.layer = 0,
            .strength = strength,
            .q = part(q),
            .k = part(k),
            .v = part(v),
            .z = part(result.z),
            .lse = part(result.lse),
            .c = part(result.c),
            .num_sink_keys = sinks,
            .sink_logits = logits,
            .learned_strength = learned == 2 ? part(learned_strength) : learned_strength};
  }

  double strength_at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    if (learned == 0) return strength;
    return (learned == 1 ? learned_strength[h] : learned_strength[b][h][i]).item<double>();
  }

  /// The documents of a row, as begins and the row's end.
  std::vector<std::int64_t> borders() const {
    if (!packed) return {0, q.size(2)};
    return {0, 1, 6, 9, 18};
  }
};

/// Means of one head, by name, as kQuantities has them; by their definition: the T x T map and
/// every pair of values, in double.
std::map<std::string, double> direct(const Case& test, std::int64_t h) {
  const auto cosine = [](const at::Tensor& a, const at::Tensor& b) {
    const double norms = (a.norm() * b.norm()).item<double>();
    return norms == 0 ? 0.0 : (a * b).sum().item<double>() / norms;
  };
  const std::int64_t batch = test.q.size(0), length = test.q.size(2), n = test.sinks;
  const std::int64_t key_head = h * test.key_heads / Case::kHeads;
  const std::vector<std::int64_t> borders = test.borders();
  std::map<std::string, double> sums;
  double pairs = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    const at::Tensor q = test.q[b][h].to(at::kDouble), k = test.k[b][key_head].to(at::kDouble),
                     v = test.v[b][key_head].to(at::kDouble);
    for (std::size_t document = 0; document + 1 < borders.size(); ++document) {
      const std::int64_t begin = borders[document], end = borders[document + 1];
      for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t j = begin; j < end; ++j) {
          if (i == j) continue;
          sums["value_cosine"] += cosine(v[n + i], v[n + j]);
          ++pairs;
        }
        // The row of the map: sink keys, then all own ones.
        at::Tensor scores = at::mv(k, q[i]) / std::sqrt(q.size(1));
        for (std::int64_t j = 0; j < length; ++j) {
          const bool visible = begin <= j && j <= i && (test.window == 0 || i - j < test.window);
          if (!visible) scores[n + j] = -INFINITY;
        }
        at::Tensor weights = scores.exp();
        double sum = weights.sum().item<double>(), sink_logit = 0;
        if (test.sink_logits) sink_logit = std::exp(test.logits[h].item<double>());
        sum += sink_logit;
        weights = weights / sum;
        const at::Tensor y = at::mv(v.t(), weights), w = v[n + i];
        const at::Tensor removed = test.strength_at(b, h, i) * (y * w).sum() / (w * w).sum() * w;
        const at::Tensor z = y - removed;
        sums["strength"] += test.strength_at(b, h, i);
        sums["attention_diagonal"] += weights[n + i].item<double>();
        sums["first_key_mass"] += weights[n + begin].item<double>();
        sums["sink_mass"] += weights.narrow(0, 0, n).sum().item<double>() + sink_logit / sum;
        sums["output_value_cosine"] += cosine(y, w);
        if (z.norm().item<double>() > 1e-9) sums["final_value_cosine"] += cosine(z, w);
        sums["removed_share"] += ((removed * removed).sum() / (y * y).sum()).item<double>();
      }
    }
  }
  for (auto& [name, sum] : sums)
    sum /= name == "value_cosine" ? pairs : static_cast<double>(batch * length);
  return sums;
}

class LayerSumsAgainstTheMap : public ::testing::TestWithParam<Case> {};

TEST_P(LayerSumsAgainstTheMap, AgreeInEveryQuantityOfEveryHead) {
  Case test = GetParam();
  test.run();
  LayerSums sums(test.window);
  if (test.packed) {
    sums.add(test.trace(0, 1), test.cu_seqlens);
  } else {  // in two halves, as a diagnosis streams them
    for (const std::int64_t b : {0, 1}) sums.add(test.trace(b, 1));
  }
  const Json layer = sums.means(3);
  EXPECT_EQ(layer.at("layer"), 3);
  ASSERT_EQ(layer.at("heads").size(), 4u);
  std::vector<std::string> names(kQuantities.begin(), kQuantities.end());
  names.push_back("strength");
  for (const std::string& name : names) {
    double mean = 0;
    for (std::int64_t h = 0; h < 4; ++h) {
      const Json& head = layer["heads"][static_cast<std::size_t>(h)];
      EXPECT_EQ(head.at("head"), h);
      const double expected = direct(test, h)[name];
      EXPECT_NEAR(head.at(name), expected, 1e-6) << name << " of head " << h;
      mean += expected / 4;
    }
    EXPECT_NEAR(layer.at(name), mean, 1e-6) << name;
  }
  EXPECT_GT(std::abs(layer["output_value_cosine"].get<double>()), 0.1)
      << "the case must tell something";
  EXPECT_EQ(layer["sink_mass"] > 0.01, test.sinks > 0 || test.sink_logits);
}

INSTANTIATE_TEST_SUITE_P(
    Layers, LayerSumsAgainstTheMap,
    ::testing::Values(
        Case{}, Case{.strength = 0}, Case{.key_heads = 2, .strength = 0.5}, Case{.key_heads = 1},
        Case{.window = 3}, Case{.window = 1}, Case{.sinks = 2}, Case{.sink_logits = true},
        Case{.learned = 1}, Case{.learned = 2}, Case{.packed = true},
        Case{.key_heads = 2, .window = 4, .sinks = 3, .sink_logits = true, .learned = 2},
        Case{.key_heads = 2,
             .window = 4,
             .sinks = 3,
             .sink_logits = true,
             .packed = true,
             .learned = 1}),
    [](const auto& one) { return "Case" + std::to_string(one.index); });

TEST(LayerSums, OfZeroValuesAreZeroNotNaN) {
  const at::Tensor q = at::ones({1, 1, 3, 2}), zero = at::zeros({1, 1, 3, 2});
  const at::Tensor lse = at::zeros({1, 1, 3}), c = at::zeros({1, 1, 3});
  LayerSums sums;
  sums.add({0, 1.0, q, q, zero, zero, lse, c});
  const Json means = sums.means(0);
  EXPECT_EQ(means.at("value_cosine"), 0.0);
  EXPECT_EQ(means.at("output_value_cosine"), 0.0);
  EXPECT_EQ(means.at("final_value_cosine"), 0.0);
  EXPECT_EQ(means.at("removed_share"), 0.0);
}

TEST(LayerSums, DoNotHideNaN) {
  const at::Tensor x = at::full({1, 1, 3, 2}, NAN), row = at::full({1, 1, 3}, NAN);
  LayerSums sums;
  sums.add({0, 1.0, x, x, x, x, row, row});
  const Json means = sums.means(0);
  for (const char* name : kQuantities) {
    if (std::string_view(name) == "sink_mass") continue;  // there are none
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
  const Json means = sums.means(0);
  EXPECT_TRUE(means.at("value_cosine").is_null());
  EXPECT_NEAR(means.at("attention_diagonal"), 1.0, 1e-6);
  EXPECT_NEAR(means.at("output_value_cosine"), 1.0, 1e-6);
  EXPECT_EQ(means.at("final_value_cosine"), 0.0);
  EXPECT_NEAR(means.at("first_key_mass"), 1.0, 1e-6);
  EXPECT_NEAR(means.at("removed_share"), 1.0, 1e-6);
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
  Json of(const model::ModelConfig& config, const DiagnoseConfig& asked, bool packed = false) {
    data::Split split{.tokens = data::TokenStream({path_})};
    if (packed) split.document_opener = 0;
    return diagnose(model::Gpt(config, 1), split, asked, /*show_progress=*/false);
  }

  model::ModelConfig config_;
  xsa::testing::TempFolder folder_;
  std::filesystem::path path_;
};

TEST_F(Diagnose, FindsNothingLeftAlongTheOwnValueWhereALayerIsExclusive) {
  config_.exclusive_layers = "last 1";
  const Json result = of(config_, {.sequences = 5, .batch_size = 2});
  ASSERT_EQ(result.at("layers").size(), 2u);
  const Json &standard = result["layers"][0], &exclusive = result["layers"][1];
  EXPECT_EQ(standard["final_value_cosine"], standard["output_value_cosine"]);
  EXPECT_EQ(standard["strength"], 0.0);
  EXPECT_EQ(standard["removed_share"], 0.0);
  EXPECT_NEAR(exclusive["final_value_cosine"], 0.0, 1e-5);
  EXPECT_EQ(exclusive["strength"], 1.0);
  EXPECT_GT(std::abs(exclusive["output_value_cosine"].get<double>()), 1e-2);
  EXPECT_GT(exclusive["removed_share"], 1e-2);
}

TEST_F(Diagnose, DoesNotDependOnTheBatchSize) {
  for (const bool packed : {false, true}) {
    const Json one = of(config_, {.sequences = 5, .batch_size = 1}, packed);
    const Json all = of(config_, {.sequences = 5, .batch_size = 8}, packed);
    for (const char* name : kQuantities) {
      EXPECT_NEAR(one["layers"][1][name], all["layers"][1][name], 1e-5) << name;
      EXPECT_NEAR(one["layers"][1]["heads"][1][name], all["layers"][1]["heads"][1][name], 1e-5)
          << name;
    }
  }
}

TEST_F(Diagnose, OfPackedDocumentsSeesEachAlone) {
  // Documents of at most 11 tokens: in a row of 12 the first key of most is another's.
  const Json across = of(config_, {.sequences = 20}), within = of(config_, {.sequences = 20}, true);
  EXPECT_GT(within["layers"][0]["first_key_mass"].get<double>(),
            across["layers"][0]["first_key_mass"].get<double>() + 0.1);
}

TEST_F(Diagnose, OfAWindowDoesNotCountAFirstKeyOutOfSight) {
  config_.window = 1;
  const Json result = of(config_, {.sequences = 2});
  EXPECT_NEAR(result["layers"][0]["attention_diagonal"], 1.0, 1e-6);
  EXPECT_NEAR(result["layers"][0]["first_key_mass"], 1.0 / 12, 1e-6);  // the first token's alone
}

TEST_F(Diagnose, OfSinksAndLearnedStrengthsFindsTheirShare) {
  for (const std::string learned : {"head", "token"}) {
    for (const bool packed : {false, true}) {
      config_.sink_tokens = 2;
      config_.sink_logits = true;
      config_.learned_strength = learned;
      config_.strength = 0.5;
      config_.kv_heads = 1;
      const Json layer = of(config_, {.sequences = 4}, packed)["layers"][0];
      // New weights are small: attention is about even over two sink keys, the logit and the rest.
      EXPECT_GT(layer["sink_mass"], 0.3);
      EXPECT_LT(layer["sink_mass"], 0.9);
      EXPECT_NEAR(layer["strength"], 0.5, 0.1);
      EXPECT_GT(layer["removed_share"], 0.0);
    }
  }
}

TEST_F(Diagnose, RefusesATextShorterThanOneSequence) {
  config_.context = 501;
  EXPECT_THROW(of(config_, {}), UsageError);
}

}  // namespace
}  // namespace xsa::diagnose
