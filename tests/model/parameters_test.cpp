#include "xsa/model/parameters.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/support/model_variants.h"
#include "xsa/model/gpt.h"

namespace xsa::model {
namespace {

using testing::ElementsAre;

/// Every dimension different: 2 layers, C = 10, 6 heads on 3, D = 4, inner width 24, V = 17.
ModelConfig odd_shape() {
  ModelConfig config;
  config.layers = 2;
  config.width = 10;
  config.heads = 6;
  config.kv_heads = 3;
  config.head_dim = 4;
  config.feed_forward_width = 24;
  config.context = 16;
  config.vocab_size = 17;
  return config;
}

std::vector<std::string> described(const ModelConfig& config) {
  std::vector<std::string> result;
  const Gpt model(config, 1);
  for (const NamedTensor& p : model.parameters())
    result.push_back(cat(p.name, " ", p.tensor.sizes(), p.decay ? " decay" : ""));
  return result;
}

at::Tensor find(const Gpt& model, const std::string& name) {
  for (const NamedTensor& p : model.parameters())
    if (p.name == name) return p.tensor;
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

TEST(Parameters, HaveNanoGptsNamesInTheOrderOfTheForwardPass) {
  EXPECT_THAT(
      described(odd_shape()),
      ElementsAre(
          "transformer.wte.weight [17, 10] decay", "transformer.ln_e.weight [10]",
          "transformer.h.0.ln_1.weight [10]", "transformer.h.0.attn.c_attn.weight [48, 10] decay",
          "transformer.h.0.attn.c_proj.weight [10, 24] decay", "transformer.h.0.ln_2.weight [10]",
          "transformer.h.0.mlp.c_fc.weight [24, 10] decay",
          "transformer.h.0.mlp.c_proj.weight [10, 24] decay", "transformer.h.1.ln_1.weight [10]",
          "transformer.h.1.attn.c_attn.weight [48, 10] decay",
          "transformer.h.1.attn.c_proj.weight [10, 24] decay", "transformer.h.1.ln_2.weight [10]",
          "transformer.h.1.mlp.c_fc.weight [24, 10] decay",
          "transformer.h.1.mlp.c_proj.weight [10, 24] decay", "transformer.ln_f.weight [10]"));
}

TEST(Parameters, HaveBiasesAndAHeadWhereTheConfigurationSaysSo) {
  ModelConfig config = odd_shape();
  config.layers = 1;
  config.bias = true;
  config.tied_head = false;
  config.embedding_norm = false;
  EXPECT_THAT(
      described(config),
      ElementsAre(
          "transformer.wte.weight [17, 10] decay", "transformer.h.0.ln_1.weight [10]",
          "transformer.h.0.ln_1.bias [10]", "transformer.h.0.attn.c_attn.weight [48, 10] decay",
          "transformer.h.0.attn.c_attn.bias [48]",
          "transformer.h.0.attn.c_proj.weight [10, 24] decay",
          "transformer.h.0.attn.c_proj.bias [10]", "transformer.h.0.ln_2.weight [10]",
          "transformer.h.0.ln_2.bias [10]", "transformer.h.0.mlp.c_fc.weight [24, 10] decay",
          "transformer.h.0.mlp.c_fc.bias [24]", "transformer.h.0.mlp.c_proj.weight [10, 24] decay",
          "transformer.h.0.mlp.c_proj.bias [10]", "transformer.ln_f.weight [10]",
          "transformer.ln_f.bias [10]", "lm_head.weight [17, 10] decay"));
}

TEST(Parameters, OfVariantsAreThereWhereTheConfigurationSaysSo) {
  ModelConfig config = odd_shape();
  config.layers = 1;
  config.bias = true;
  config.embedding_norm = false;
  config.sink_tokens = 2;
  config.sink_logits = true;
  config.learned_strength = "head";
  config.output_gate = true;
  EXPECT_THAT(
      described(config),
      ElementsAre(
          "transformer.wte.weight [17, 10] decay", "transformer.h.0.ln_1.weight [10]",
          "transformer.h.0.ln_1.bias [10]", "transformer.h.0.attn.c_attn.weight [48, 10] decay",
          "transformer.h.0.attn.c_attn.bias [48]", "transformer.h.0.attn.sink_key [3, 2, 4]",
          "transformer.h.0.attn.sink_value [3, 2, 4]", "transformer.h.0.attn.sink_logits [6]",
          "transformer.h.0.attn.strength [6]", "transformer.h.0.attn.c_gate.weight [24, 10] decay",
          "transformer.h.0.attn.c_proj.weight [10, 24] decay",
          "transformer.h.0.attn.c_proj.bias [10]", "transformer.h.0.ln_2.weight [10]",
          "transformer.h.0.ln_2.bias [10]", "transformer.h.0.mlp.c_fc.weight [24, 10] decay",
          "transformer.h.0.mlp.c_fc.bias [24]", "transformer.h.0.mlp.c_proj.weight [10, 24] decay",
          "transformer.h.0.mlp.c_proj.bias [10]", "transformer.ln_f.weight [10]",
          "transformer.ln_f.bias [10]"));

  ModelConfig other = odd_shape();
  other.exclusive_layers = "last 1";
  other.learned_strength = "token";
  other.gated_norm = 5;
  std::vector<std::string> added = described(other);
  const std::vector<std::string> plain = described(odd_shape());
  std::erase_if(added, [&](const std::string& name) {
    return std::find(plain.begin(), plain.end(), name) != plain.end();
  });
  std::vector<std::string> expected;
  const auto gates = [&](const std::string& norm) {
    expected.push_back(norm + ".gate_down.weight [5, 10] decay");
    expected.push_back(norm + ".gate_up.weight [10, 5] decay");
  };
  gates("transformer.h.0.ln_1"), gates("transformer.h.0.ln_2"), gates("transformer.h.1.ln_1");
  expected.emplace_back("transformer.h.1.attn.c_strength.weight [6, 10] decay");
  expected.emplace_back("transformer.h.1.attn.c_strength.bias [6]");
  gates("transformer.h.1.ln_2"), gates("transformer.ln_f");
  EXPECT_EQ(added, expected);
}

TEST(Parameters, OfVariantsStartAsDocumented) {
  ModelConfig config;
  config.vocab_size = 256;
  config.strength = 0.75;
  config.sink_logits = true;
  config.sink_tokens = 16;
  config.gated_norm = 16;
  config.output_gate = true;
  for (const char* learned : {"head", "token"}) {
    config.learned_strength = learned;
    const Gpt model(config, 1);
    for (const NamedTensor& p : model.parameters()) {
      const at::Tensor x = p.tensor.detach();
      const auto all_are = [&](double value) { return x.eq(value).all().item<bool>(); };
      if (p.name.ends_with("attn.strength") || p.name.ends_with("c_strength.bias")) {
        EXPECT_TRUE(all_are(0.75)) << p.name;
      } else if (p.name.ends_with("sink_logits") || p.name.ends_with("c_strength.weight")) {
        EXPECT_TRUE(all_are(0)) << p.name;
      } else if (p.name.find("gate") != std::string::npos ||
                 p.name.find("sink_") != std::string::npos) {
        const double n = static_cast<double>(x.numel());
        EXPECT_NEAR(x.std().item<double>(), 0.02, 5 * 0.02 / std::sqrt(2 * n)) << p.name;
        EXPECT_NEAR(x.mean().item<double>(), 0, 5 * 0.02 / std::sqrt(n)) << p.name;
      }
    }
  }
}

TEST(Parameters, AreTheSameBitsWhateverVariantIsAdded) {
  const Gpt plain(odd_shape(), 5), other(all_variants(odd_shape()), 5);
  EXPECT_GT(other.parameters().size(), plain.parameters().size());
  for (const NamedTensor& p : plain.parameters())
    EXPECT_TRUE(at::equal(p.tensor, find(other, p.name))) << p.name;
}

TEST(Parameters, AreLeavesThatRequireGradients) {
  const Gpt model(odd_shape(), 1);
  for (const NamedTensor& p : model.parameters()) {
    EXPECT_TRUE(p.tensor.is_leaf() && p.tensor.requires_grad()) << p.name;
    EXPECT_EQ(p.tensor.scalar_type(), at::kFloat) << p.name;
  }
}

TEST(Parameters, StartAsNanoGptsDo) {
  ModelConfig config;
  config.vocab_size = 256;
  config.layers = 8;
  config.bias = true;
  const double residual = 0.02 / std::sqrt(2 * 8);
  const Gpt model(config, 1);
  for (const NamedTensor& p : model.parameters()) {
    const at::Tensor x = p.tensor.detach().to(at::kDouble);
    if (!p.decay) {
      const double expected = p.name.find("ln_") != std::string::npos && p.name.ends_with("weight");
      EXPECT_TRUE(x.eq(expected).all().item<bool>()) << p.name;
      continue;
    }
    const double std = p.name.ends_with("c_proj.weight") ? residual : 0.02;
    const double n = static_cast<double>(x.numel());  // bounds: five standard deviations
    EXPECT_NEAR(x.mean().item<double>(), 0, 5 * std / std::sqrt(n)) << p.name;
    EXPECT_NEAR(x.std().item<double>(), std, 5 * std / std::sqrt(2 * n)) << p.name;
    const double kurtosis = x.div(std).pow(4).mean().item<double>();
    EXPECT_NEAR(kurtosis, 3, 5 * std::sqrt(96 / n)) << p.name;
  }
}

TEST(Parameters, FollowInitStd) {
  ModelConfig config = odd_shape();
  const Gpt small(config, 1);
  config.init_std = 0.08;
  const Gpt large(config, 1);
  const std::string name = "transformer.h.1.mlp.c_proj.weight";
  EXPECT_TRUE(at::allclose(find(small, name) * 4, find(large, name), 1e-6, 0));
}

TEST(Parameters, AreTheSameBitsForStandardAndExclusiveAttention) {
  ModelConfig config = odd_shape();
  const Gpt exclusive(config, 5);
  config.attention = "standard";
  const Gpt standard(config, 5);
  for (const NamedTensor& p : exclusive.parameters())
    EXPECT_TRUE(at::equal(p.tensor, find(standard, p.name))) << p.name;
}

TEST(Parameters, DependOnTheirOwnNameAndSeedAlone) {
  ModelConfig config = odd_shape();
  const Gpt plain(config, 5);
  config.bias = true;
  config.tied_head = false;
  const Gpt other(config, 5);
  config.layers = 5;
  const Gpt deeper(config, 5);
  for (const NamedTensor& p : plain.parameters()) {
    EXPECT_TRUE(at::equal(p.tensor, find(other, p.name))) << p.name;
    if (p.name.ends_with("c_proj.weight")) continue;  // scaled by the number of layers
    EXPECT_TRUE(at::equal(p.tensor, find(deeper, p.name))) << p.name;
  }
  const Gpt reseeded(odd_shape(), 6);
  EXPECT_FALSE(at::equal(find(plain, kEmbedding), find(reseeded, kEmbedding)));
  EXPECT_FALSE(at::equal(find(plain, "transformer.h.0.attn.c_attn.weight"),
                         find(plain, "transformer.h.1.attn.c_attn.weight")));
}

TEST(Count, SumsTheModelsOwnTensors) {
  for (const bool tied : {true, false}) {
    ModelConfig config = odd_shape();
    config.bias = true;
    config.tied_head = tied;
    std::int64_t all = 0;
    const Gpt model(config, 1);
    for (const NamedTensor& p : model.parameters()) all += p.tensor.numel();
    EXPECT_EQ(count(config).parameters, all);
    EXPECT_EQ(count(config).non_embedding_parameters, all - (tied ? 1 : 2) * 17 * 10);
  }
}

TEST(Count, SumsTheTensorsOfEveryVariant) {
  for (const ModelConfig& variant : every_variant(odd_shape())) {
    std::int64_t all = 0, matrices = 0;
    const Gpt model(variant, 1);
    for (const NamedTensor& p : model.parameters()) {
      all += p.tensor.numel();
      if (p.decay) matrices += p.tensor.numel();
    }
    const ModelCount counted = count(variant);
    EXPECT_EQ(counted.parameters, all);
    // Every matrix once a token; pairs of queries with the 16 tokens' keys and with all sinks.
    const double window = static_cast<double>(variant.window);
    const double pairs =
        variant.window == 0 ? 16 * 17 / 2 : window * (window + 1) / 2 + (16 - window) * window;
    const double attention =
        4.0 * 2 * 6 * 4 * (pairs / 16 + static_cast<double>(variant.sink_tokens));
    EXPECT_DOUBLE_EQ(counted.forward_flops_per_token,
                     2 * static_cast<double>(matrices) + attention);
  }
}

TEST(Count, AgreesWithTheHandForTheDemo) {
  ModelConfig config;
  config.vocab_size = 256;
  const std::int64_t layer = 128 * 384 + 128 * 128 + 2 * 128 * 512;
  const ModelCount counted = count(config);
  EXPECT_EQ(counted.non_embedding_parameters, 4 * layer + 10 * 128);
  EXPECT_EQ(counted.parameters, 4 * layer + 10 * 128 + 256 * 128);
  // A sequence: every weight once a token, the head too; 256 * 257 / 2 scores and weighted values.
  const double sequence =
      256.0 * 2 * (4 * layer + 256 * 128) + 4 * (256 * 257 / 2) * 4.0 * (4 * 32);
  EXPECT_DOUBLE_EQ(counted.forward_flops_per_token, sequence / 256);
}

TEST(Count, AgreesWithGpt2sSize) {
  ModelConfig config;
  config.layers = 12, config.width = 768, config.heads = 12, config.head_dim = 64;
  config.context = 1024, config.vocab_size = 50257, config.bias = true;
  config.embedding_norm = false;
  config.position = "learned";
  EXPECT_EQ(count(config).parameters, 124'439'808);  // NanoGPT prints 123.65M, without positions
  EXPECT_EQ(count(config).non_embedding_parameters, 124'439'808 - (1024 + 50257) * 768);
}

TEST(Count, LetsLearnedPositionsCostNoMultiplication) {
  ModelConfig config = odd_shape();
  config.position = "none";
  const double without = count(config).forward_flops_per_token;
  config.position = "learned";
  EXPECT_EQ(count(config).forward_flops_per_token, without);
}

TEST(Count, CountsThePairsOfAWindowAlone) {
  ModelConfig config = odd_shape();
  const auto pairs = [&](std::int64_t window) {
    config.window = window;
    const double attention =
        4.0 * static_cast<double>(config.layers * config.heads * config.head_dim);
    config.context = 10;
    const double ten = count(config).forward_flops_per_token;
    config.context = 2;  // 3 pairs in 2 tokens, whatever the window
    config.window = 0;
    return 10 * ((ten - count(config).forward_flops_per_token) / attention + 1.5);
  };
  EXPECT_NEAR(pairs(0), 55, 1e-6);
  EXPECT_NEAR(pairs(3), 1 + 2 + 3 * 8, 1e-6);
  EXPECT_NEAR(pairs(1), 10, 1e-6);
  EXPECT_NEAR(pairs(10), 55, 1e-6);
  EXPECT_NEAR(pairs(1000), 55, 1e-6);
}

TEST(Count, LeavesFlopsAsTheyAreWhenTheHeadIsUntied) {
  ModelConfig config = odd_shape();
  const double tied = count(config).forward_flops_per_token;
  config.tied_head = false;
  EXPECT_EQ(count(config).forward_flops_per_token, tied);
}

}  // namespace
}  // namespace xsa::model
