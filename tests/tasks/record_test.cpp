#include "xsa/tasks/record.h"

#include <gmock/gmock.h>

#include "tests/support/temp_folder.h"

namespace xsa::tasks {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kWhere = "piqa: a.jsonl, record 17";

template <class Use>
std::string refusal(const std::string& json, Use&& use) {
  const Json record = Json::parse(json);
  return xsa::testing::error_of([&] { use(Record(record, kWhere)); });
}

TEST(Record, SaysWhereWhatWasExpectedAndWhatCame) {
  EXPECT_EQ(refusal(R"({"goal": 5})", [](const Record& r) { r.text("goal"); }),
            "piqa: a.jsonl, record 17: goal: expected a text, got 5");
  EXPECT_THAT(refusal(R"({"goal": null})", [](const Record& r) { r.text("goal"); }),
              HasSubstr("got null"));
  EXPECT_THAT(refusal(R"({"goal": ""})", [](const Record& r) { r.filled_text("goal"); }),
              HasSubstr("not empty"));
}

TEST(Record, NamesTheFieldsThatAreThereWhereOneIsMissing) {
  EXPECT_THAT(
      refusal(R"({"goals": "a", "sol1": "b"})", [](const Record& r) { r.text("goal"); }),
      AllOf(HasSubstr("'goal' is missing (did you mean 'goals'?)"), HasSubstr("'goals', 'sol1'")));
  EXPECT_THAT(refusal("{}", [](const Record& r) { r.text("goal"); }), HasSubstr("has none"));
  EXPECT_THAT(refusal("[1]", [](const Record& r) { r.text("goal"); }),
              HasSubstr("expected an object"));
}

TEST(Record, RefusesTextThatIsNotUtf8) {
  Json record = {{"goal", "a\xff"}};
  const Record read(record, kWhere);
  EXPECT_THAT(xsa::testing::error_of([&] { read.text("goal"); }), HasSubstr("UTF-8"));
}

TEST(Record, CutsWhatIsLongInItsMessage) {
  const std::string message = refusal(R"({"endings": [")" + std::string(5000, 'x') + R"("]})",
                                      [](const Record& r) { r.texts("endings", 4); });
  EXPECT_THAT(message, HasSubstr("expected a list of 4 texts, got a list of 1: [\"xxx"));
  EXPECT_LT(message.size(), 250u);
}

TEST(Record, NamesThePlaceInAList) {
  EXPECT_THAT(refusal(R"({"endings": ["a", 2]})", [](const Record& r) { r.texts("endings", 2); }),
              HasSubstr("endings[1]: expected a text, got 2"));
}

TEST(Record, ReadsLabelsOfEveryKind) {
  const Json record = {{"a", "2"}, {"b", 2}, {"c", true}, {"d", 2.0}};
  const Record read(record, kWhere);
  EXPECT_EQ(read.label_index("a", {"1", "2"}), 1);
  EXPECT_EQ(read.label_index("b", {"1", "2"}), 1);
  EXPECT_EQ(read.label("c"), "true");
  EXPECT_THAT(xsa::testing::error_of([&] { read.label("d"); }), HasSubstr("a text or an integer"));
}

TEST(Record, TellsAKeptAnswerFromAWrongOne) {
  const auto use = [](const Record& r) { r.label_index("label", {"0", "1"}); };
  EXPECT_THAT(refusal(R"({"label": 2})", use),
              AllOf(HasSubstr("one of '0', '1'"), ::testing::Not(HasSubstr("secret"))));
  EXPECT_THAT(refusal(R"({"label": -1})", use), HasSubstr("secret"));
  EXPECT_THAT(refusal(R"({"label": ""})", use), HasSubstr("secret"));
}

TEST(Choices, ComeAsListsOrAsAList) {
  for (const char* json :
       {R"({"choices": {"text": ["x", "y"], "label": ["A", "B"]}})",
        R"({"choices": [{"text": "x", "label": "A"}, {"label": "B", "text": "y"}]})"}) {
    const Json record = Json::parse(json);
    const Choices choices = Record(record, kWhere).choices("choices");
    EXPECT_THAT(choices.texts, ElementsAre("x", "y"));
    EXPECT_THAT(choices.labels, ElementsAre("A", "B"));
  }
  const Json numbers = {{"choices", {{"text", {"x", "y"}}, {"label", {1, 2}}}}};
  EXPECT_THAT(Record(numbers, kWhere).choices("choices").labels, ElementsAre("1", "2"));
}

TEST(Choices, RefuseWhatIsNoChoice) {
  const auto use = [](const Record& r) { r.choices("choices"); };
  EXPECT_THAT(refusal(R"({"choices": {"text": ["x"], "label": ["A", "B"]}})", use),
              HasSubstr("of one length"));
  EXPECT_THAT(refusal(R"({"choices": {"text": "x", "label": "A"}})", use),
              HasSubstr("of one length"));
  EXPECT_THAT(refusal(R"({"choices": ["x", "y"]})", use),
              HasSubstr("choices[0]: expected an object with text and label"));
  EXPECT_THAT(refusal(R"({"choices": {"text": ["x"], "label": ["A"]}})", use),
              HasSubstr("two choices"));
  EXPECT_THAT(refusal(R"({"choices": {"text": ["x", "y"], "label": ["A", "A"]}})", use),
              HasSubstr("labels that differ"));
  EXPECT_THAT(refusal(R"({"choices": {"text": ["x", null], "label": ["A", "B"]}})", use),
              HasSubstr("choices.text: expected a text, got null"));
}

}  // namespace
}  // namespace xsa::tasks
