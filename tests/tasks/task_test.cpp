#include "xsa/tasks/task.h"

#include <gmock/gmock.h>

#include <functional>

#include "tests/support/temp_folder.h"
#include "tests/tasks/golden.h"

namespace xsa::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using xsa::testing::error_of;

const std::string kWhere = "here";

Question ask(const std::string& task, const Json& record) {
  return find_task(task).ask(Record(record, kWhere));
}

std::string refusal(const std::string& task, const Json& record) {
  return error_of([&] { ask(task, record); });
}

Json arc(const Json& labels, const Json& key) {
  return {{"question", "Why?"},
          {"choices", {{"text", {"a", "b", "c"}}, {"label", labels}}},
          {"answerKey", key}};
}

TEST(Tasks, AreNineInAlphabeticalOrder) {
  std::vector<std::string> names;
  for (const Task& task : all_tasks()) {
    names.push_back(task.name);
    EXPECT_FALSE(task.metrics.empty());
    EXPECT_GT(task.published, 0);
    EXPECT_TRUE(task.split == "test" || task.split == "validation");
  }
  EXPECT_THAT(names,
              ElementsAre("arc_easy", "boolq", "hellaswag", "lambada_openai", "lambada_standard",
                          "openbookqa", "piqa", "social_iqa", "winogrande"));
}

/// All records that differ from `record` in one place, at any depth, where it has each of `values`.
void for_each_damage(Json& record, Json& place, const std::vector<Json>& values,
                     const std::function<void()>& visit) {
  const Json intact = place;
  for (const Json& value : values) {
    place = value;
    visit();
  }
  place = intact;
  if (!place.is_structured()) return;
  for (std::size_t i = 0; i < place.size(); ++i) {
    auto item = place.begin();
    std::advance(item, static_cast<std::ptrdiff_t>(i));
    for_each_damage(record, *item, values, visit);
  }
}

TEST(Tasks, AnswerAnyDamagedRecordWithAnErrorOrAQuestion) {
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -1,
                                    7,
                                    1e300,
                                    "",
                                    " ",
                                    "\xff",
                                    "_",
                                    "[",
                                    Json::array(),
                                    Json::object(),
                                    Json::array({1, "a", nullptr}),
                                    {{"text", 5}, {"label", "x"}},
                                    {{"text", {"a", "b"}}, {"label", {"A", Json::object()}}}};
  std::int64_t asked = 0, refused = 0;
  for (const Json& golden : testing::golden_lines("task")) {
    const Task& task = find_task(golden.at("task"));
    Json record = golden.at("record");
    for_each_damage(record, record, values, [&] {
      try {
        task.ask(Record(record, kWhere));
        ++asked;
      } catch (const Error&) {
        ++refused;
      }
    });
  }
  EXPECT_GT(asked, 100);
  EXPECT_GT(refused, 500);
}

TEST(Tasks, AreChosenByNameInTheOrderGiven) {
  const auto chosen = parse_tasks("piqa, arc_easy");
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0]->name, "piqa");
  EXPECT_EQ(chosen[1]->name, "arc_easy");
  EXPECT_EQ(parse_tasks("all").size(), 9u);
  EXPECT_THAT(error_of<UsageError>([] { parse_tasks("piqa,helaswag"); }),
              HasSubstr("did you mean 'hellaswag'?"));
  EXPECT_THAT(error_of<UsageError>([] { parse_tasks("piqa,piqa"); }), HasSubstr("twice"));
  EXPECT_THAT(error_of<UsageError>([] { parse_tasks(""); }), HasSubstr("unknown task ''"));
  EXPECT_THAT(error_of<UsageError>([] { parse_tasks("piqa,,boolq"); }), HasSubstr("''"));
}

TEST(Arc, MatchesItsKeyByLabelNeverByNumber) {
  EXPECT_EQ(ask("arc_easy", arc({"A", "B", "C"}, "B")).gold, 1);
  EXPECT_EQ(ask("arc_easy", arc({"1", "2", "3"}, "2")).gold, 1);
  EXPECT_EQ(ask("arc_easy", arc({"3", "1", "2"}, "3")).gold, 0);
  EXPECT_EQ(ask("arc_easy", arc({1, 2, 3}, 3)).gold, 2);
  EXPECT_THAT(
      refusal("arc_easy", arc({"A", "B", "C"}, "2")),
      HasSubstr(R"(answerKey: expected one of the choices' labels, ["A","B","C"], got "2")"));
}

TEST(OpenBookQa, AllowsSpaceBeforeItsKey) {
  Json record = arc({"A", "B", "C"}, " C");
  record["question_stem"] = "Rain is";
  EXPECT_EQ(ask("openbookqa", record).gold, 2);
  EXPECT_THAT(refusal("arc_easy", record), HasSubstr("answerKey"));
}

TEST(BoolQ, ReadsTheLabelsOfAllItsCopies) {
  const auto gold = [](const Json& label, const char* field = "label") {
    return ask("boolq", {{"passage", "p"}, {"question", "q"}, {field, label}}).gold;
  };
  for (const Json& yes : std::vector<Json>{1, true, "true", "True", "1"}) EXPECT_EQ(gold(yes), 1);
  for (const Json& no : std::vector<Json>{0, false, "false", "False", "0"}) EXPECT_EQ(gold(no), 0);
  EXPECT_EQ(gold(true, "answer"), 1);
  EXPECT_THAT(error_of([&] { gold(-1); }), HasSubstr("secret"));
  EXPECT_THAT(error_of([&] { gold("yes"); }), HasSubstr("0 or 1, false or true"));
  EXPECT_THAT(refusal("boolq", {{"passage", "p"}, {"question", "q"}}),
              HasSubstr("'label' is missing"));
}

TEST(BoolQ, AsksNoBeforeYes) {
  const Question question = ask("boolq", {{"passage", "P"}, {"question", "is it"}, {"label", 1}});
  EXPECT_EQ(question.choices[0].context, "P\nQuestion: is it?\nAnswer:");
  EXPECT_EQ(question.choices[0].continuation, " no");
  EXPECT_EQ(question.choices[1].continuation, " yes");
}

TEST(Lambada, SplitsAtTheLastSpaceAlone) {
  const auto pair = [](const char* text) {
    return ask("lambada_openai", {{"text", text}}).choices[0];
  };
  EXPECT_EQ(pair("he answered\nPaul").context, "he");
  EXPECT_EQ(pair("he answered\nPaul").continuation, " answered\nPaul");
  EXPECT_EQ(pair("a  b").context, "a ");
  EXPECT_EQ(pair("ends ").continuation, " ");
  EXPECT_EQ(pair("one").context, "");
  EXPECT_EQ(pair("one").continuation, " one");
  EXPECT_EQ(pair("a\u00a0b\u2003c").context, "");
  EXPECT_THAT(refusal("lambada_openai", {{"text", ""}}), HasSubstr("not empty"));
}

TEST(WinoGrande, PutsTheOptionsIntoTheContext) {
  const Question question = ask(
      "winogrande",
      {{"sentence", "So _ ate _ .  "}, {"option1", "Lena"}, {"option2", "Rosa"}, {"answer", 2}});
  EXPECT_EQ(question.choices[0].context, "So Lena");
  EXPECT_EQ(question.choices[1].context, "So Rosa");
  EXPECT_EQ(question.choices[0].continuation, " ate _ .");
  EXPECT_EQ(question.target, "ate _ .");
  EXPECT_EQ(question.gold, 1);
  EXPECT_THAT(refusal("winogrande", {{"sentence", "no blank"}, {"option1", "a"}, {"option2", "b"}}),
              HasSubstr("a text with a blank"));
}

TEST(Piqa, KeepsTheSpacesOfItsSolutions) {
  const Question question =
      ask("piqa", {{"goal", "G"}, {"sol1", " a "}, {"sol2", ""}, {"label", "1"}});
  EXPECT_EQ(question.choices[0].continuation, "  a ");
  EXPECT_EQ(question.choices[1].continuation, " ");
  EXPECT_EQ(question.gold, 1);
}

TEST(HellaSwag, AddsWhatTheHarnessAdds) {
  const Question question = ask("hellaswag", {{"activity_label", "A"},
                                              {"ctx_a", "b."},
                                              {"ctx_b", "élan Tom"},
                                              {"endings", {"[x] p", "q", "r", "s"}},
                                              {"label", 3}});
  EXPECT_EQ(question.choices[0].context, "A: b. Élan tom");
  EXPECT_EQ(question.choices[0].continuation, "  p");
  EXPECT_EQ(question.added.dump(),
            R"({"query":"A: b. Élan tom","choices":[" p","q","r","s"],"gold":3})");
}

}  // namespace
}  // namespace xsa::tasks
