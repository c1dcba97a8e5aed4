#include "xsa/train/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/train/config.h"
#include "xsa/train/tensorboard.h"

namespace xsa::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

Json recipe(const std::function<void(RunConfig&)>& change = {}) {
  RunConfig config;
  if (change) change(config);
  return to_json(config);
}

TEST(RunFolder, MayBeMissingOrEmpty) {
  const testing::TempFolder folder;
  for (const bool resume : {false, true}) {
    EXPECT_NO_THROW(check_run_folder(folder.path(), resume, false));
    EXPECT_NO_THROW(check_run_folder(folder / "missing", resume, false));
    EXPECT_NO_THROW(check_run_folder(folder / "missing", false, resume));
  }
}

TEST(RunFolder, OfAnotherRunIsRefusedUnlessItsUseIsSaid) {
  const testing::TempFolder folder;
  atomic_write(folder / "recipe.json", "{}");
  EXPECT_THAT([&] { check_run_folder(folder.path(), false, false); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("--resume"), HasSubstr("--overwrite"))));
  EXPECT_NO_THROW(check_run_folder(folder.path(), true, false));
  EXPECT_NO_THROW(check_run_folder(folder.path(), false, true));
  EXPECT_THROW(check_run_folder(folder.path(), true, true), UsageError);
}

TEST(RunFolder, ThatIsNoRunsIsNeverTaken) {
  const testing::TempFolder folder;
  atomic_write(folder / "thesis.tex", "all of it");
  for (const auto& [resume, overwrite] : {std::pair{false, false}, {true, false}, {false, true}})
    EXPECT_THAT([&] { check_run_folder(folder.path(), resume, overwrite); },
                ThrowsMessage<UsageError>(HasSubstr("nothing in it was touched")));
  EXPECT_THROW(check_run_folder(folder / "thesis.tex", false, true), UsageError);
}

TEST(RunFolder, OfAnotherKindIsNeverTaken) {
  for (const char* file : {"compare.json", "sweep.json", "results.json", "manifest.json"}) {
    const testing::TempFolder folder;
    atomic_write(folder / file, "{}");
    if (file == std::string("compare.json")) atomic_write(folder / "recipe.json", "{}");
    for (const auto& [resume, overwrite] : {std::pair{false, false}, {true, false}, {false, true}})
      EXPECT_THAT([&] { check_run_folder(folder.path(), resume, overwrite); },
                  ThrowsMessage<UsageError>(HasSubstr("nothing in it was touched")))
          << file;
  }
}

TEST(RunFolder, IsClearedOfARunsFilesOnly) {
  const testing::TempFolder folder;
  for (const char* name :
       {"recipe.json", "metrics.jsonl", "summary.json", "diagnose.json", kEventFile,
        "checkpoints/LATEST", "checkpoints/step-000001/manifest.json"})
    atomic_write(folder / name, "{}");
  atomic_write(folder / "notes.txt", "mine");
  clear_run_folder(folder.path());
  EXPECT_EQ(read_file(folder / "notes.txt"), "mine");
  fs::remove(folder / "notes.txt");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(RunFolder, IsHeldByOneRunAtATime) {
  const testing::TempFolder folder;
  {
    const FolderLock lock(folder.path(), "xsa train");
    EXPECT_THAT([&] { FolderLock(folder.path(), "xsa train"); },
                ThrowsMessage<Error>(HasSubstr("another process is training here")));
  }
  EXPECT_NO_THROW(FolderLock(folder.path(), "xsa train"));
  EXPECT_NO_THROW(check_run_folder(folder.path(), false, false)) << "a lock alone is no run";
}

TEST(Recipe, DifferencesAreNamedWithBothValues) {
  const Json saved = recipe();
  const Json wanted = recipe([](RunConfig& config) {
    config.train.lr = 0.25;
    config.train.steps = 5;
    config.model.attention = "standard";
    config.train.log_every = 3;
  });
  EXPECT_THAT([&] { check_same_recipe(saved, wanted, "runs/a"); },
              ThrowsMessage<UsageError>(
                  AllOf(HasSubstr("runs/a"), HasSubstr("train.lr (0.002 there, 0.25 asked for)"),
                        HasSubstr("train.steps (300 there, 5 asked for)"),
                        HasSubstr("model.attention"), Not(HasSubstr("log_every")))));
}

TEST(Recipe, ThatIsNoneIsNamed) {
  for (const char* text : {"3", "[]", "null", "{\"model\": 3}"})
    EXPECT_THAT([&] { check_same_recipe(Json::parse(text), recipe(), "runs/a"); },
                ThrowsMessage<Error>(AllOf(HasSubstr("runs/a: "), HasSubstr("found "))))
        << text;
}

/// What is measured is held by what was measured: Conditions.*.
TEST(Recipe, MayDifferInWhatIsReportedAndKept) {
  const Json wanted = recipe([](RunConfig& config) {
    config.train.log_every = 1;
    config.train.eval_every = 2;
    config.train.eval_rows = 3;
    config.train.eval_texts = "a.txt";
    config.train.eval_tasks = "piqa";
    config.train.eval_task_data = "tasks";
    config.train.eval_limit = 3;
    config.train.checkpoint_every = 4;
    config.train.keep_checkpoints = 5;
    config.train.threads = 6;
    config.data.cache = "elsewhere";
    config.data.read_ahead = 0;
  });
  EXPECT_NO_THROW(check_same_recipe(recipe(), wanted, "runs/a"));
}

TEST(Conditions, OfWhatWasMeasuredAreNamedWithBothValues) {
  const Conditions saved{{{"train.eval_rows", 2}, {"piqa", "12"}}};
  EXPECT_NO_THROW(check_same_conditions(saved, saved.values, "runs/a"));
  EXPECT_THAT(
      [&] { check_same_conditions(saved, {{"train.eval_rows", 64}, {"piqa", "12"}}, "runs/a"); },
      ThrowsMessage<UsageError>(AllOf(HasSubstr("runs/a"),
                                      HasSubstr("train.eval_rows (2 there, 64 asked for)"),
                                      Not(HasSubstr("piqa")), HasSubstr("--overwrite"))));
}

TEST(Conditions, OfAnotherTextAreNoUsageError) {
  EXPECT_THAT([&] { check_same_conditions({{{"data_sha256", "1"}}}, {{"data_sha256", "2"}}, "a"); },
              ThrowsMessage<Error>(HasSubstr("another text")));
}

TEST(Conditions, ThatAnEarlierProgramDidNotRecordAreNotHeldAgainstIt) {
  const Json summary = {{"data_sha256", "1"}, {"validation_rows", 2}};
  const Json wanted = {{"data_sha256", "1"}, {"train.eval_rows", 2}, {"diagnose.sequences", 8}};
  EXPECT_NO_THROW(check_same_conditions(recorded(recipe(), summary, wanted), wanted, "a"));
  Json other = wanted;
  other["train.eval_rows"] = 64;
  EXPECT_THROW(check_same_conditions(recorded(recipe(), summary, other), other, "a"), UsageError);
}

TEST(Recipe, OfAnEarlierProgramHasTheDefaultOfASettingThatItLacks) {
  Json saved = recipe();
  saved["model"].erase("strength");
  EXPECT_NO_THROW(check_same_recipe(saved, recipe(), "runs/a"));
  const Json wanted = recipe([](RunConfig& config) { config.model.strength = 0.5; });
  EXPECT_THAT([&] { check_same_recipe(saved, wanted, "runs/a"); },
              ThrowsMessage<UsageError>(HasSubstr("model.strength (1.0 there, 0.5 asked for)")));
}

}  // namespace
}  // namespace xsa::train
