#include "xsa/base/fields.h"

#include <gmock/gmock.h>

#include "tests/support/temp_folder.h"

namespace xsa {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using xsa::testing::error_of;

struct Sample {
  double lr = 0.5;
  std::int64_t steps = 3;
  bool bias = false;
  std::string attention = "exclusive";
  std::string note;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& field) {
    field("lr", self.lr, "peak learning rate", above(0));
    field("steps", self.steps, "optimizer steps", between(1, 10));
    field("bias", self.bias, "biases");
    field("attention", self.attention, "kind of attention", one_of({"standard", "exclusive"}));
    field("note", self.note, "for people");
  }
};

std::string error_from_json(const Json& json) {
  Sample sample;
  return error_of<UsageError>([&] { apply_json(sample, json, "train"); });
}

std::string error_from_text(const std::string& key, const std::string& text) {
  Sample sample;
  return error_of<UsageError>([&] { apply_text(sample, key, text, "train"); });
}

TEST(Fields, ReturnThroughJsonUnchanged) {
  Sample sample{.lr = 1.0 / 3, .steps = 7, .bias = true, .attention = "standard", .note = "a\nb"};
  Sample copy;
  apply_json(copy, Json::parse(to_json(sample).dump()), "train");
  EXPECT_EQ(to_json(copy), to_json(sample));
  EXPECT_THAT(field_names<Sample>(), ElementsAre("lr", "steps", "bias", "attention", "note"));
}

TEST(Fields, ThatAreNotNamedStayAsTheyAre) {
  Sample sample{.lr = 0.25};
  apply_json(sample, {{"steps", 9}}, "train");
  EXPECT_EQ(sample.lr, 0.25);
  EXPECT_EQ(sample.steps, 9);
}

TEST(Fields, ReadACommandLinesText) {
  Sample sample;
  apply_text(sample, "lr", "3e-4", "train");
  apply_text(sample, "steps", "1e1", "train");
  apply_text(sample, "bias", "true", "train");
  apply_text(sample, "attention", "standard", "train");
  apply_text(sample, "note", "12", "train");
  EXPECT_EQ(sample.lr, 3e-4);
  EXPECT_EQ(sample.steps, 10);
  EXPECT_TRUE(sample.bias);
  EXPECT_EQ(sample.attention, "standard");
  EXPECT_EQ(sample.note, "12");
}

TEST(Fields, RefuseAnUnknownKeyWithTheNearestName) {
  EXPECT_THAT(error_from_json({{"step", 1}}),
              HasSubstr("train: unknown setting 'step' (did you mean 'steps'?)"));
  EXPECT_THAT(error_from_text("atention", "standard"), HasSubstr("did you mean 'attention'?"));
}

TEST(Fields, RefuseAnotherType) {
  EXPECT_THAT(error_from_json({{"steps", 2.5}}), HasSubstr("train.steps: expected an integer"));
  EXPECT_THAT(error_from_json({{"steps", true}}), HasSubstr("expected an integer, got true"));
  EXPECT_THAT(error_from_json({{"lr", "fast"}}), HasSubstr("train.lr: expected a finite number"));
  EXPECT_THAT(error_from_json({{"bias", 1}}), HasSubstr("expected true or false, got 1"));
  EXPECT_THAT(error_from_json({{"note", 1}}), HasSubstr("train.note: expected text"));
  EXPECT_THAT(error_from_json({{"steps", 1e300}}), HasSubstr("expected an integer"));
  EXPECT_THAT(error_from_json({{"steps", std::numeric_limits<std::uint64_t>::max()}}),
              HasSubstr("expected an integer"));
  EXPECT_THAT(error_from_json(Json::array()), HasSubstr("expected a table of settings"));
  EXPECT_THAT(error_from_text("lr", "nan"), HasSubstr("expected a finite number"));
  EXPECT_THAT(error_from_text("lr", ""), HasSubstr("expected a finite number"));
  EXPECT_THAT(error_from_text("steps", "3x"), HasSubstr("expected an integer"));
}

TEST(Fields, RefuseAValueOutOfRange) {
  EXPECT_THAT(error_from_json({{"steps", 0}}),
              HasSubstr("train.steps: expected a value in [1, 10], got 0"));
  EXPECT_THAT(error_from_json({{"steps", 11}}), HasSubstr("got 11"));
  EXPECT_THAT(error_from_json({{"lr", 0}}), HasSubstr("expected a value above 0, got 0"));
  EXPECT_NE(error_from_text("lr", "1e999"), "");
  EXPECT_THAT(
      error_from_json({{"attention", "exclusiv"}}),
      AllOf(HasSubstr("one of standard, exclusive"), HasSubstr("did you mean 'exclusive'?")));
  EXPECT_EQ(error_from_json({{"steps", 1}, {"lr", 1e-30}}), "");
  EXPECT_EQ(error_from_json({{"steps", 10}}), "");
}

TEST(Fields, TellTheirDefaultsTypesAndRanges) {
  const std::vector<FieldHelp> rows = help_of<Sample>();
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0].default_value, "0.5");
  EXPECT_EQ(rows[0].type, "number");
  EXPECT_EQ(rows[0].range, "above 0");
  EXPECT_EQ(rows[1].type, "integer");
  EXPECT_EQ(rows[1].range, "in [1, 10]");
  EXPECT_EQ(rows[2].type, "true or false");
  EXPECT_EQ(rows[3].type, "text");
  EXPECT_EQ(rows[3].help, "kind of attention");
  EXPECT_EQ(rows[4].range, "");
  EXPECT_EQ(describe(at_least(2)), "at least 2");
}

}  // namespace
}  // namespace xsa
