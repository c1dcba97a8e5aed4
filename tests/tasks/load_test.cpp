#include "xsa/tasks/load.h"

#include <gmock/gmock.h>

#include <sstream>

#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"

namespace xsa::tasks {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

constexpr char kPiqa[] = R"({"goal": "Wash", "sol1": "use soap", "sol2": "use sand", "label": 0})";

struct Loaded {
  TaskSamples samples;
  std::vector<std::string> warnings;
};

Loaded load(const std::string& task, const DataPlaces& places,
            std::optional<std::int64_t> limit = {}) {
  Loaded loaded;
  loaded.samples =
      load_samples(find_task(task), places, *text::make_tokenizer("byte"), limit,
                   [&](const std::string& warning) { loaded.warnings.push_back(warning); });
  return loaded;
}

TEST(LoadSamples, CountsOnOverFilesAndKeepsTheRecords) {
  const TempFolder folder;
  folder.write("piqa/validation-00000-of-00002.jsonl", std::string(kPiqa) + "\n" + kPiqa + "\n");
  folder.write("piqa/validation-00001-of-00002.jsonl", std::string(kPiqa) + "\n");
  const TaskSamples samples = load("piqa", {.folder = folder.path()}).samples;
  ASSERT_EQ(samples.samples.size(), 3u);
  EXPECT_EQ(samples.records, 3);
  EXPECT_EQ(samples.split, "validation");
  EXPECT_EQ(samples.files.size(), 2u);
  EXPECT_EQ(samples.samples[2].index, 2);
  EXPECT_EQ(samples.samples[2].record, Json::parse(kPiqa));
  EXPECT_EQ(samples.samples[2].target, "0");
  EXPECT_THAT(samples.samples[2].lengths, ElementsAre(8, 8));
  EXPECT_EQ(samples.samples[2].requests[1].choice, 1);
}

TEST(LoadSamples, KeepsFieldsThatTheTaskDoesNotRead) {
  const TempFolder folder;
  folder.write("piqa.jsonl", R"({"goal": "G", "sol1": "a", "sol2": "b", "label": 0, )"
                             R"("passage": 5, "text": [null]})");
  EXPECT_EQ(load("piqa", {.folder = folder.path()}).samples.samples[0].record.at("passage"), 5);
}

TEST(LoadSamples, MeasuresChoicesInCharacters) {
  const TempFolder folder;
  folder.write("piqa.jsonl", R"({"goal": "G", "sol1": " café", "sol2": "中😀", "label": 0})");
  EXPECT_THAT(load("piqa", {.folder = folder.path()}).samples.samples[0].lengths,
              ElementsAre(5, 2));
}

TEST(LoadSamples, ChecksTheRecordsBeyondTheLimitToo) {
  const TempFolder folder;
  const auto file = folder.write("piqa.jsonl", std::string(kPiqa) + "\n" + kPiqa + "\n");
  const TaskSamples samples = load("piqa", {.folder = folder.path()}, 1).samples;
  EXPECT_EQ(samples.samples.size(), 1u);
  EXPECT_EQ(samples.records, 2);
  folder.write("piqa.jsonl", std::string(kPiqa) + "\n{\"goal\": \"Wash\"}\n");
  EXPECT_THAT(error_of([&] { load("piqa", {.folder = folder.path()}, 1); }),
              AllOf(HasSubstr("piqa: " + file.string() + ", record 1"),
                    HasSubstr("is missing; the record has 'goal'")));
}

TEST(LoadSamples, NamesFileRecordAndChoiceOfATextThatCannotBeAsked) {
  const TempFolder folder;
  folder.write("lambada_openai.jsonl", "{\"text\": \"a b\"}\n{\"text\": \" \\u2003 b\"}\n");
  EXPECT_THAT(error_of([&] { load("lambada_openai", {.folder = folder.path()}); }),
              AllOf(HasSubstr("record 1"), HasSubstr("choice 0"), HasSubstr("white space")));
}

TEST(LoadSamples, RefusesAFileWithoutRecords) {
  const TempFolder folder;
  folder.write("piqa.jsonl", "");
  EXPECT_THAT(error_of([&] { load("piqa", {.folder = folder.path()}); }), HasSubstr("no records"));
}

TEST(LoadSamples, WarnsOfWhatIsNotThePublishedSplit) {
  const TempFolder folder;
  folder.write("openbookqa/main/validation.jsonl",
               R"({"question_stem": "Rain", "choices": [{"text": "a", "label": "A"},
                  {"text": "b", "label": "B"}], "answerKey": "A"})");
  EXPECT_THAT(error_of([&] { load("openbookqa", {.folder = folder.path()}); }),
              HasSubstr("validation.jsonl"));  // JSON over two lines is no JSON line
  folder.write("openbookqa/main/validation.jsonl",
               R"({"question_stem": "Rain", "choices": [{"text": "a", "label": "A"},)"
               R"({"text": "b", "label": "B"}], "answerKey": "A"})");
  EXPECT_THAT(load("openbookqa", {.folder = folder.path()}).warnings,
              ElementsAre(HasSubstr("no test split found, taking validation"),
                          HasSubstr("1 records, the published test split has 500")));
}

TEST(LoadSamples, WarnsOfAnotherEditionOfTheTexts) {
  const TempFolder folder;
  folder.write("boolq.jsonl", R"({"passage": "Mills grind.", "question": "do mills", "label": 1})");
  folder.write("lambada_openai.jsonl", R"({"text": "all is lower case"})");
  folder.write("lambada_standard.jsonl", R"({"text": "Paul said so"})");
  for (const char* task : {"boolq", "lambada_openai", "lambada_standard"})
    EXPECT_THAT(load(task, {.folder = folder.path()}).warnings, Contains(HasSubstr("edition")));
  folder.write("boolq.jsonl",
               R"({"passage": "Mill -- Mills grind.", "question": "do mills", "label": 1})");
  EXPECT_THAT(load("boolq", {.folder = folder.path()}).warnings,
              Not(Contains(HasSubstr("edition"))));
}

TEST(DataPlaces, AreOneFolderAndPathsOfTasks) {
  const DataPlaces places = parse_places({"records", "piqa=a=b.jsonl"});
  EXPECT_EQ(places.folder, "records");
  EXPECT_THAT(places.named, ElementsAre(::testing::Pair("piqa", "a=b.jsonl")));
  EXPECT_THAT(error_of<UsageError>([] { parse_places({"a", "b"}); }), HasSubstr("one folder"));
  EXPECT_THAT(error_of<UsageError>([] { parse_places({"piqa=a", "piqa=b"}); }), HasSubstr("twice"));
  EXPECT_THAT(error_of<UsageError>([] { parse_places({"piqua=a"}); }), HasSubstr("did you mean"));
  EXPECT_THAT(error_of<UsageError>([] { load("piqa", {}); }), HasSubstr("expected --data DIR"));
}

TEST(DataPlaces, MayHoldAnEqualsSignWhereTheFolderExists) {
  const TempFolder folder;
  folder.write("a=b/piqa.jsonl", kPiqa);
  EXPECT_EQ(parse_places({(folder / "a=b").string()}).folder, folder / "a=b");
}

TEST(WriteRequests, GivesALineARequestWithTheKeysInOrder) {
  const TempFolder folder;
  folder.write("piqa.jsonl", kPiqa);
  const auto file = folder / "out/requests.jsonl";
  write_requests({load("piqa", {.folder = folder.path()}).samples}, file);
  std::istringstream lines(read_file(file));
  std::string first, second, third;
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_EQ(
      first,
      R"({"task":"piqa","index":0,"choice":0,"context":"Question: Wash\nAnswer:","continuation":" use soap",)"
      R"("context_ids":[81,117,101,115,116,105,111,110,58,32,87,97,115,104,10,65,110,115,119,101,114,58],)"
      R"("continuation_ids":[32,117,115,101,32,115,111,97,112]})");
  EXPECT_EQ(Json::parse(second).at("choice"), 1);
  EXPECT_FALSE(std::getline(lines, third));
}

}  // namespace
}  // namespace xsa::tasks
