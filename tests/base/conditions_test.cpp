#include "xsa/base/conditions.h"

#include <gmock/gmock.h>

namespace xsa {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Settings {
  double lr = 0.5;
  std::int64_t log_every = 10;
  std::int64_t unclassed = 1;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& field) {
    field("lr", self.lr, "a rate", above(0));
    field("log_every", self.log_every, "steps", at_least(1), Effect::kNone);
    field("unclassed", self.unclassed, "what nobody thought of");
  }
};

Conditions whole(const Json& values) { return {values, true}; }

std::vector<std::string> names(const std::vector<Difference>& differences) {
  std::vector<std::string> all;
  for (const Difference& one : differences) all.push_back(one.name);
  return all;
}

TEST(Conditions, AreTheSettingsThatCanChangeAResult) {
  Json values = Json::object();
  add_conditions(values, Settings(), "train");
  EXPECT_EQ(values, Json({{"train.lr", 0.5}, {"train.unclassed", 1}}));
}

TEST(Conditions, EqualOnesHaveNoDifferenceInWhateverOrderTheyStand) {
  EXPECT_THAT(differences(whole({{"a", 1}, {"b", "x"}}), whole({{"b", "x"}, {"a", 1}})), IsEmpty());
}

TEST(Conditions, NameWhatDiffersWithBothValues) {
  const auto found = differences(whole({{"train.lr", 0.5}, {"train.eval_rows", 2}}),
                                 whole({{"train.lr", 0.5}, {"train.eval_rows", 64}}));
  EXPECT_EQ(list(found, "asked for"), "train.eval_rows (2 there, 64 asked for)");
}

TEST(Conditions, ThatOneSideLacksDiffer) {
  EXPECT_THAT(differences(whole({{"a", 1}}), whole({{"a", 1}, {"b", 2}})),
              ElementsAre(Field(&Difference::there, "nothing")));
  EXPECT_THAT(differences(whole({{"a", 1}, {"b", 2}}), whole({{"a", 1}})),
              ElementsAre(Field(&Difference::here, "nothing")));
}

TEST(Conditions, SeedAndAttentionAreLeftOutWhereTheyMayDiffer) {
  const Conditions one = whole({{"train.seed", 1}, {"model.attention", "standard"}});
  const Conditions other = whole({{"train.seed", 2}, {"model.attention", "exclusive"}});
  EXPECT_EQ(names(differences(one, other)),
            (std::vector<std::string>{"model.attention", "train.seed"}));
  EXPECT_EQ(names(differences(one, other, kSeed)), std::vector<std::string>{"model.attention"});
  EXPECT_THAT(differences(one, other, kSeedAndAttention), IsEmpty());
}

TEST(Conditions, AHashIsShownByItsBeginning) {
  const std::string hash(64, 'a'), other(64, 'b');
  const auto found = differences(whole({{"data_sha256", hash}}), whole({{"data_sha256", other}}));
  EXPECT_EQ(list(found, "now"), "data_sha256 (aaaaaaaaaaaa... there, bbbbbbbbbbbb... now)");
}

TEST(Conditions, OfARunAreThoseThatItRecorded) {
  const Conditions found = conditions_of({{"train", {{"lr", 1}}}}, {{"conditions", {{"a", 1}}}});
  EXPECT_TRUE(found.whole);
  EXPECT_EQ(found.values, Json({{"a", 1}}));
}

TEST(Conditions, OfARunThatRecordedNoneAreItsRecipeAndWhatItMeasured) {
  const Json recipe = {{"data", {{"source", "a.txt"}, {"tokenizer", "byte"}}},
                       {"train", {{"lr", 0.5}, {"eval_rows", 0}}}};
  const Conditions found =
      conditions_of(recipe, {{"data_sha256", "12"}, {"validation_rows", 7}, {"loss", 2}});
  EXPECT_FALSE(found.whole);
  EXPECT_EQ(found.values, Json({{"data.tokenizer", "byte"},
                                {"train.lr", 0.5},
                                {"train.eval_rows", 7},
                                {"data_sha256", "12"}}));
  EXPECT_THAT(conditions_of(recipe, nullptr).values.dump(), HasSubstr("a.txt"));
}

TEST(Conditions, OfAModelAreThoseOfItsTraining) {
  EXPECT_EQ(without_measured({{"train.lr", 0.5},
                              {"train.eval_rows", 2},
                              {"diagnose.seed", 1},
                              {"evaluated piqa", "12"},
                              {"data_sha256", "34"}}),
            Json({{"train.lr", 0.5}, {"data_sha256", "34"}}));
}

TEST(Conditions, ThatARunDidNotRecordAreNotKnownToDiffer) {
  const Conditions recipe{{{"train.lr", 0.5}, {"train.log_every", 10}}, false};
  EXPECT_THAT(differences(recipe, whole({{"train.lr", 0.5}, {"piqa", "12"}})), IsEmpty());
  EXPECT_THAT(differences(whole({{"train.lr", 0.5}, {"piqa", "12"}}), recipe), IsEmpty());
  EXPECT_EQ(names(differences(recipe, whole({{"train.lr", 0.25}}))),
            std::vector<std::string>{"train.lr"});
}

}  // namespace
}  // namespace xsa
