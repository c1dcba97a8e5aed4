#include "xsa/base/owned_folder.h"

#include <gmock/gmock.h>

#include "tests/support/temp_folder.h"
#include "xsa/base/file.h"

namespace xsa {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TempFolder;

TEST(OwnedFolder, IsToldByItsContent) {
  const std::vector<std::pair<std::vector<const char*>, FolderKind>> cases = {
      {{}, FolderKind::kFree},
      {{".lock"}, FolderKind::kFree},
      {{"recipe.json.partial", ".lock"}, FolderKind::kFree},
      {{"notes.txt"}, FolderKind::kOther},
      {{"recipe.json", "metrics.jsonl"}, FolderKind::kRun},
      {{"recipe.json", "compare.json"}, FolderKind::kComparison},
      {{"sweep.json"}, FolderKind::kSweep},
      {{"sweep.json", "recipe.json"}, FolderKind::kSweep},
      {{"results.json"}, FolderKind::kEvaluation},
      {{"scores.jsonl"}, FolderKind::kEvaluation},
      {{"manifest.json"}, FolderKind::kShards},
      {{"manifest.json", "recipe.json"}, FolderKind::kOther}};
  for (const auto& [files, kind] : cases) {
    const TempFolder folder;
    for (const char* file : files) folder.write(file, "{}");
    EXPECT_EQ(kind_of(folder.path()), kind) << ::testing::PrintToString(files);
  }
  const TempFolder folder;
  EXPECT_EQ(kind_of(folder / "missing"), FolderKind::kFree);
  EXPECT_EQ(kind_of(folder.write("file", "")), FolderKind::kOther);
}

TEST(OwnedFolder, OfAComparisonThatHasNotEndedIsNoRuns) {
  const TempFolder folder;
  folder.write("recipe.json", R"({"model": {}, "compare": {"seeds": 1}})");
  EXPECT_EQ(kind_of(folder.path()), FolderKind::kComparison);
  folder.write("recipe.json", "{");
  EXPECT_EQ(kind_of(folder.path()), FolderKind::kRun) << "as far as can be told";
}

TEST(OwnedFolder, IsNeverTakenForOneOfAnotherKind) {
  const TempFolder folder;
  EXPECT_NO_THROW(check_kind(folder.path(), FolderKind::kSweep));
  folder.write("sweep.json", "{}");
  EXPECT_NO_THROW(check_kind(folder.path(), FolderKind::kSweep));
  EXPECT_THAT(error_of<UsageError>([&] { check_kind(folder.path(), FolderKind::kRun); }),
              AllOf(HasSubstr("that xsa train made, found a sweep"),
                    HasSubstr("nothing in it was touched")));
}

TEST(OwnedFolder, IsHeldByOneProcessWhichIsNamed) {
  const TempFolder folder;
  {
    const FolderLock lock(folder / "new", "xsa compare");
    EXPECT_THAT(error_of([&] { FolderLock(folder / "new", "xsa sweep"); }),
                AllOf(HasSubstr((folder / "new").string()), HasSubstr("xsa compare, process ")));
  }
  EXPECT_NO_THROW(FolderLock(folder / "new", "xsa sweep"));
  EXPECT_EQ(kind_of(folder / "new"), FolderKind::kFree);
}

TEST(OwnedFolder, IsClearedOfWhatAKilledProcessLeftOfItsFiles) {
  const TempFolder folder;
  for (const char* file : {"recipe.json.partial", "summary.json.partial", "thesis.txt.partial"})
    folder.write(file, "half");
  const FolderLock lock(folder.path(), "xsa train");
  EXPECT_FALSE(fs::exists(folder / "recipe.json.partial"));
  EXPECT_FALSE(fs::exists(folder / "summary.json.partial"));
  EXPECT_EQ(read_file(folder / "thesis.txt.partial"), "half");
}

}  // namespace
}  // namespace xsa
