#include "xsa/checkpoint/runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/checkpoint/temp_folder.h"
#include "xsa/base/file.h"

namespace xsa::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

TEST(Runs, AreFoundInComparisonsAndSweepsAndNoOthers) {
  const TempFolder temp;
  const fs::path root = temp.path();
  for (const char* const file :
       {"b/recipe.json", "b/metrics.jsonl", "demo/recipe.json", "demo/compare.json",
        "demo/standard-seed1/recipe.json", "demo/standard-seed1/summary.json",
        "sweep/points/lr=1/recipe.json", "sweep/points/lr=1/checkpoints/LATEST",
        "sweep/points/lr=2/notes.txt", ".hidden/recipe.json", ".hidden/metrics.jsonl",
        "b/inner/recipe.json", "b/inner/metrics.jsonl", "mine/recipe.json"})
    atomic_write(root / file, "{}");
  fs::create_directory_symlink(root, root / "loop");
  EXPECT_THAT(runs_below(root),
              ElementsAre(root / "b", root / "demo/standard-seed1", root / "sweep/points/lr=1"));
  EXPECT_TRUE(is_run(root / "b"));
  EXPECT_FALSE(is_run(root / "demo"));
  EXPECT_THAT(runs_below(root / "nowhere"), ElementsAre());
}

}  // namespace
}  // namespace xsa::checkpoint
