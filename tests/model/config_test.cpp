#include "xsa/model/config.h"

#include <gmock/gmock.h>

#include <limits>

namespace xsa::model {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

ModelConfig valid() {
  ModelConfig config;
  config.vocab_size = 256;
  return config;
}

std::vector<double> strengths(const std::string& exclusive_layers, double strength = 1) {
  ModelConfig config = valid();
  config.layers = 5;
  config.exclusive_layers = exclusive_layers;
  config.strength = strength;
  std::vector<double> result;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    result.push_back(config.layer_strength(layer));
  return result;
}

std::string refusal(const ModelConfig& config) {
  try {
    config.validate();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ModelConfig, TakesItsDefaultsOnceTheVocabularyIsKnown) { EXPECT_NO_THROW(valid().validate()); }

TEST(ModelConfig, MakesTheNamedLayersExclusive) {
  EXPECT_THAT(strengths("all"), ElementsAre(1, 1, 1, 1, 1));
  EXPECT_THAT(strengths("first 2"), ElementsAre(1, 1, 0, 0, 0));
  EXPECT_THAT(strengths("last 3"), ElementsAre(0, 0, 1, 1, 1));
  EXPECT_THAT(strengths("last 5"), ElementsAre(1, 1, 1, 1, 1));
  EXPECT_THAT(strengths("0,3"), ElementsAre(1, 0, 0, 1, 0));
  EXPECT_THAT(strengths(" 4, 2 "), ElementsAre(0, 0, 1, 0, 1));
}

TEST(ModelConfig, GivesExclusiveLayersItsStrength) {
  EXPECT_THAT(strengths("last 1", 0.5), ElementsAre(0, 0, 0, 0, 0.5));
}

TEST(ModelConfig, HasNoStrengthAnywhereInStandardAttention) {
  ModelConfig config = valid();
  config.attention = "standard";
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    EXPECT_EQ(config.layer_strength(layer), 0);
}

TEST(ModelConfig, SaysWhichLayersAreExclusiveAtStrengthZeroToo) {
  ModelConfig config = valid();
  config.exclusive_layers = "last 1";
  config.strength = 0;
  EXPECT_FALSE(config.is_exclusive(2));
  EXPECT_TRUE(config.is_exclusive(3));
  config.attention = "standard";
  EXPECT_FALSE(config.is_exclusive(3));
}

TEST(ModelConfig, RefusesALayerBeyondTheLast) {
  EXPECT_THROW(valid().layer_strength(4), UsageError);
  EXPECT_THROW(valid().layer_strength(-1), UsageError);
}

TEST(ModelConfig, RefusesLayersThatDoNotExistOrDoNotParse) {
  for (const char* text :
       {"", "some", "first", "first 0", "first 5", "last -1", "last 9", "4", "-1", "0,,1", "0,",
        ",0", "1,1", "0 1", "1.5", "0x1", "99999999999999999999"}) {
    ModelConfig config = valid();
    config.exclusive_layers = text;
    EXPECT_THAT(refusal(config),
                AllOf(HasSubstr("model.exclusive_layers: expected 'all', 'first N'"),
                      HasSubstr("of 4 layers"), HasSubstr(cat("got '", text, "'"))))
        << text;
  }
}

TEST(ModelConfig, RefusesHeadsThatDoNotShareTheirKeys) {
  ModelConfig config = valid();
  config.heads = 6, config.kv_heads = 4;
  EXPECT_THAT(refusal(config),
              AllOf(HasSubstr("model.kv_heads: expected a divisor of heads = 6, got 4"),
                    HasSubstr("give 0")));
  config.kv_heads = 12;
  EXPECT_THAT(refusal(config), HasSubstr("got 12"));
}

TEST(ModelConfig, RefusesOddHeadsOnlyWhereRopeTurnsPairs) {
  ModelConfig config = valid();
  config.head_dim = 33;
  EXPECT_THAT(refusal(config), AllOf(HasSubstr("model.head_dim: expected an even number"),
                                     HasSubstr("got 33"), HasSubstr("position = none")));
  config.position = "none";
  EXPECT_EQ(refusal(config), "accepted");
}

TEST(ModelConfig, RefusesAnUnresolvedVocabulary) {
  EXPECT_THAT(refusal(ModelConfig{}), HasSubstr("model.vocab_size: expected at least 1, got 0"));
}

TEST(ModelConfig, HoldsConfigurationsMadeInCodeToTheRangesOfRecipes) {
  ModelConfig config = valid();
  config.heads = 0;
  EXPECT_THAT(refusal(config), HasSubstr("model.heads: expected a value at least 1, got 0"));
  config = valid();
  config.norm = "batchnorm";
  EXPECT_THAT(refusal(config), HasSubstr("model.norm: expected one of layernorm"));
  config = valid();
  config.strength = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refusal(config), HasSubstr("model.strength: expected a"));
  config = valid();
  config.learned_strength = "layer";
  EXPECT_THAT(refusal(config),
              HasSubstr("model.learned_strength: expected one of none, head, token"));
  config = valid();
  config.sink_tokens = -1;
  EXPECT_THAT(refusal(config), HasSubstr("model.sink_tokens: expected a value in [0, 1024]"));
  config = valid();
  config.gated_norm = -1;
  EXPECT_THAT(refusal(config), HasSubstr("model.gated_norm: expected a value at least 0"));
}

}  // namespace
}  // namespace xsa::model
