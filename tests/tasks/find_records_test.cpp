#include "xsa/tasks/find_records.h"

#include <gmock/gmock.h>

#include "tests/support/temp_folder.h"

namespace xsa::tasks {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using xsa::testing::error_of;
using xsa::testing::TempFolder;

/// The files found for the task, as paths in the folder.
std::vector<std::string> found(const TempFolder& folder, const std::string& task) {
  std::vector<std::string> names;
  for (const auto& path : find_records(find_task(task), folder.path()).files)
    names.push_back(path.lexically_relative(folder.path()).string());
  return names;
}

TEST(FindRecords, KnowsTheLayoutsOfHubCachesAndLibraries) {
  struct Case {
    const char *task, *file;
  };
  for (const auto& [task, file] : {
           Case{"arc_easy", "allenai/ai2_arc/ARC-Easy/test-00000-of-00001.parquet"},
           Case{"arc_easy", "ai2_arc/ARC-Easy/test/0000.parquet"},
           Case{"arc_easy", "arc_easy/test.jsonl"},
           Case{"boolq", "aps/super_glue/boolq/validation-00000-of-00001.parquet"},
           Case{"boolq", "google/boolq/data/validation-00000-of-00001.parquet"},
           Case{"hellaswag", "Rowan/hellaswag/data/validation-00000-of-00001.parquet"},
           Case{"hellaswag", "hellaswag/none/validation/data-00000-of-00001.arrow"},
           Case{"hellaswag", "hellaswag.jsonl"},
           Case{"hellaswag", "hellaswag.jsonl.zst"},
           Case{"hellaswag", "hellaswag_validation.parquet"},
           Case{"hellaswag", "hellaswag-validation-00000-of-00001.parquet"},
           Case{"hellaswag", "datasets--Rowan--hellaswag/snapshots/6f3c/data/validation.parquet"},
           Case{"hellaswag", "Rowan___hellaswag/default/0.0.0/6f3c/hellaswag-validation.arrow"},
           Case{"lambada_openai", "EleutherAI/lambada_openai/default/test-00000-of-00001.parquet"},
           Case{"lambada_openai", "lambada_openai/lambada_test.jsonl"},
           Case{"lambada_standard", "lambada/plain_text/test-00000-of-00001.parquet"},
           Case{"openbookqa", "openbookqa/main/test-00000-of-00001.parquet"},
           Case{"piqa", "piqa/plain_text/validation/data-00000-of-00001.arrow"},
           Case{"piqa", "piqa/data-00000-of-00001.arrow"},
           Case{"social_iqa", "social_i_qa/none/validation/data-00000-of-00001.arrow"},
           Case{"social_iqa", "lighteval/siqa/data/validation-00000-of-00001.parquet"},
           Case{"winogrande", "winogrande/winogrande_xl/validation-00000-of-00001.parquet"},
       }) {
    const TempFolder folder;
    folder.write(file, "");
    EXPECT_THAT(found(folder, task), ElementsAre(file));
    EXPECT_EQ(find_records(find_task(task), folder.path()).split, find_task(task).split);
  }
}

TEST(FindRecords, TakesAllShardsInOrder) {
  const TempFolder folder;
  folder.write("hellaswag/data/validation-00001-of-00002.parquet", "");
  folder.write("hellaswag/data/validation-00000-of-00002.parquet", "");
  folder.write("hellaswag/data/train-00000-of-00001.parquet", "");
  EXPECT_THAT(found(folder, "hellaswag"),
              ElementsAre("hellaswag/data/validation-00000-of-00002.parquet",
                          "hellaswag/data/validation-00001-of-00002.parquet"));
}

TEST(FindRecords, RefusesMissingShardsAndThoseOfTwoUploads) {
  const TempFolder folder;
  folder.write("hellaswag/data/validation-00000-of-00002.parquet", "");
  EXPECT_THAT(error_of([&] { found(folder, "hellaswag"); }),
              HasSubstr("expected 2 shards by its name, there are 1"));
  folder.write("piqa/validation-00000-of-00001-aaaa.parquet", "");
  EXPECT_EQ(found(folder, "piqa").size(), 1u);
  folder.write("piqa/validation-00000-of-00001-bbbb.parquet", "");
  EXPECT_THAT(error_of([&] { found(folder, "piqa"); }), HasSubstr("expected 1 shards"));
}

TEST(FindRecords, NeverMistakesAnotherConfigurationForTheTasks) {
  const TempFolder folder;
  folder.write("ai2_arc/ARC-Challenge/test-00000-of-00001.parquet", "");
  folder.write("ai2_arc/test-00000-of-00001.parquet", "");
  EXPECT_THAT(error_of([&] { found(folder, "arc_easy"); }), HasSubstr("(there: ai2_arc/)"));
}

TEST(FindRecords, ReadsOneKindWhereThereAreSeveral) {
  const TempFolder folder;
  folder.write("piqa/validation.jsonl", "");
  folder.write("piqa/validation.parquet", "");
  EXPECT_THAT(found(folder, "piqa"), ElementsAre("piqa/validation.parquet"));
}

TEST(FindRecords, TakesValidationWhereThereIsNoTestSplit) {
  const TempFolder folder;
  folder.write("openbookqa/main/validation/data-00000-of-00001.arrow", "");
  EXPECT_EQ(find_records(find_task("openbookqa"), folder.path()).split, "validation");
  folder.write("openbookqa/main/test/data-00000-of-00001.arrow", "");
  EXPECT_EQ(find_records(find_task("openbookqa"), folder.path()).split, "test");
}

TEST(FindRecords, LeavesWhatTheDatasetsLibraryKeptBeside) {
  const TempFolder folder;
  folder.write("piqa/validation/data-00000-of-00001.arrow", "");
  folder.write("piqa/validation/cache-6f3c.arrow", "");
  EXPECT_THAT(found(folder, "piqa"), ElementsAre("piqa/validation/data-00000-of-00001.arrow"));
}

TEST(FindRecords, LeavesASavedSplitThatIsAnother) {
  const TempFolder folder;
  folder.write("piqa/data-00000-of-00001.arrow", "");
  folder.write("piqa/state.json", R"({"_split": "train"})");
  EXPECT_THAT(error_of([&] { found(folder, "piqa"); }), HasSubstr("no records of baber/piqa"));
  folder.write("piqa/state.json", R"({"_split": "validation"})");
  EXPECT_THAT(found(folder, "piqa"), ElementsAre("piqa/data-00000-of-00001.arrow"));
}

TEST(FindRecords, TakesTheSnapshotThatMainNames) {
  const TempFolder folder;
  for (const char* revision : {"aaa", "bbb"})
    folder.write(cat("datasets--baber--piqa/snapshots/", revision, "/validation.jsonl"), "");
  EXPECT_THAT(found(folder, "piqa"), ElementsAre(HasSubstr("/bbb/")));
  folder.write("datasets--baber--piqa/refs/main", "aaa\n");
  EXPECT_THAT(found(folder, "piqa"), ElementsAre(HasSubstr("/aaa/")));
}

TEST(FindRecords, NamesAllPlacesThatItTried) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { found(folder, "arc_easy"); }),
              AllOf(HasSubstr("allenai/ai2_arc (ARC-Easy), split test"), HasSubstr("arc_easy/"),
                    HasSubstr("datasets--allenai--ai2_arc/snapshots"), HasSubstr("there is none"),
                    HasSubstr("arc_easy_test.EXT"), HasSubstr("--data arc_easy=PATH")));
  EXPECT_THAT(error_of([&] { find_records(find_task("piqa"), folder / "nowhere"); }),
              HasSubstr("nowhere is no folder"));
}

TEST(FindRecords, DropsNoLinkToAFileThatIsGone) {
  const TempFolder folder;
  folder.write("piqa/validation-00000.jsonl", "");
  create_symlink(folder / "gone", folder / "piqa/validation-00001.jsonl");
  EXPECT_THAT(error_of([&] { found(folder, "piqa"); }),
              AllOf(HasSubstr("validation-00001.jsonl"), HasSubstr("a link to one that is gone")));
}

TEST(NamedRecords, AreAFileOrAFolderOfTheTasksOwn) {
  const TempFolder folder;
  const Task& piqa = find_task("piqa");
  const auto file = folder.write("a/x.jsonl", "");
  EXPECT_THAT(named_records(piqa, file).files, ElementsAre(file));
  EXPECT_THAT(named_records(piqa, folder / "a").files, ElementsAre(file));
  folder.write("a/y.jsonl", "");
  EXPECT_THAT(error_of([&] { named_records(piqa, folder / "a"); }),
              HasSubstr("holds 2 files and none is called validation"));
  folder.write("a/validation.jsonl", "");
  EXPECT_THAT(named_records(piqa, folder / "a").files, ElementsAre(folder / "a/validation.jsonl"));
  folder.write("b/x.txt", "");
  EXPECT_THAT(error_of([&] { named_records(piqa, folder / "b"); }), HasSubstr("found none"));
  EXPECT_THAT(error_of([&] { named_records(piqa, folder / "b/x.txt"); }),
              HasSubstr("a file of records"));
  EXPECT_THAT(error_of([&] { named_records(piqa, folder / "c"); }), HasSubstr("does not exist"));
}

}  // namespace
}  // namespace xsa::tasks
