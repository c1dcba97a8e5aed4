#include "xsa/report/parts.h"

#include <gmock/gmock.h>

#include <map>

#include "tests/support/made_comparison.h"
#include "tests/support/made_sweep.h"
#include "tests/support/temp_folder.h"
#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/report/figures.h"

namespace xsa::report {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempFolder;

constexpr char kEvaluation[] =
    R"({"results": {"piqa": {"alias": "piqa", "acc,none": 0.5, "acc_norm,none": 0.6}}, "versions": {},
        "model_name": "runs/a", "config": {"model_num_parameters": 7e8,
        "model_config": {"attention": "exclusive", "layers": 2}}})";
constexpr char kBlock[] = R"({"what": "block", "results": [{"length": 64, "mode": "forward"}]})";

TEST(ReadParts, TellsEveryKindApartByItsContent) {
  const TempFolder folder;
  testing::write_comparison(folder / "compared", {});
  testing::write_sweep(folder / "swept", {});
  testing::write_made_run(folder / "one", "standard", 1, 2.0);
  testing::write_made_run(folder / "two", "exclusive", 1, 1.9);
  folder.write("model/results.json", kEvaluation);
  folder.write("block.json", kBlock);
  folder.write("other/figures.json", R"({"layers": [{"layer": 0, "value_cosine": 0.5}]})");
  folder.write("other/notes.json", "[1, 2]");
  const Parts parts = read_parts({folder.path()});
  EXPECT_THAT(parts.problems, IsEmpty());
  ASSERT_EQ(parts.studies.size(), 3u);
  EXPECT_EQ(parts.studies[0].name, "demo");
  EXPECT_EQ(parts.studies[1].name, "runs");
  EXPECT_EQ(parts.studies[2].name, "rates");
  ASSERT_EQ(parts.studies[1].groups.size(), 1u);  // alike but for attention
  EXPECT_EQ(parts.studies[1].groups[0].standard.size(), 1u);
  EXPECT_EQ(parts.studies[1].groups[0].exclusive.size(), 1u);
  EXPECT_EQ(parts.studies[2].groups.size(), 2u);
  EXPECT_EQ(parts.studies[2].groups[0].labels, (Labels{{"lr", "1e-3"}}));
  EXPECT_EQ(parts.studies[2].groups[0].exclusive.size(), 3u);
  ASSERT_EQ(parts.evaluations.size(), 1u);
  EXPECT_EQ(parts.evaluations[0].attention, "exclusive");
  EXPECT_EQ(parts.evaluations[0].tasks.at("piqa").at("acc_norm"), 0.6);
  EXPECT_EQ(parts.blocks.size(), 1u);
  ASSERT_EQ(parts.diagnoses.size(), 1u);
  EXPECT_EQ(parts.diagnoses[0].name, "other/figures.json");
}

TEST(ReadParts, SaysThatARunIsLeftOutWhichHasTheRecipeAndSeedOfAnother) {
  const TempFolder folder;
  testing::write_made_run(folder / "one", "standard", 1, 2.0);
  testing::write_made_run(folder / "two", "standard", 1, 1.9);
  testing::write_made_run(folder / "three", "standard", 2, 1.9);
  const Parts parts = read_parts({folder / "one", folder / "two", folder / "three"});
  EXPECT_THAT(parts.problems, ElementsAre(HasSubstr("two: has the recipe and seed of")));
  EXPECT_EQ(parts.studies.at(0).groups.at(0).standard.size(), 2u);
}

/// The run in `folder` with more in its summary.
void add_to_summary(const fs::path& folder, const Json& more) {
  Json summary = read_json_file(folder / "summary.json");
  summary.update(more);
  write_json_file(folder / "summary.json", summary);
}

TEST(ReadParts, NeverTakesRunsOnTwoTextsForSeeds) {
  const TempFolder folder;
  for (const std::int64_t seed : {1, 2, 3}) {
    const fs::path run = folder / cat("run-seed", seed);
    testing::write_made_run(run, "standard", seed, 2.0 + 0.1 * static_cast<double>(seed));
    add_to_summary(run, {{"data_sha256", std::string(64, seed == 3 ? 'b' : 'a')}});
  }
  const Parts parts = read_parts({folder.path()});
  const auto& groups = parts.studies.at(0).groups;
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].standard.size(), 2u);
  EXPECT_EQ(name_of(groups[0].labels), "804K, run, data_sha256 aaaaaaaaaaaa...");
  EXPECT_EQ(name_of(groups[1].labels), "804K, run, data_sha256 bbbbbbbbbbbb...");
}

TEST(ReadParts, ShowsPointsOfASweepApartThatWereMeasuredInTwoWays) {
  const TempFolder folder;
  testing::write_sweep(folder.path(), {});
  for (const auto& entry : fs::recursive_directory_iterator(folder / "points"))
    if (entry.path().filename() == "summary.json") {
      const std::string run = entry.path().parent_path().filename().string();
      const bool is_other = run.starts_with("lr=1e-3") && run.ends_with("seed=3");
      add_to_summary(entry.path().parent_path(),
                     {{"conditions", {{"train.eval_rows", is_other ? 2 : 64}}}});
    }
  const Parts parts = read_parts({folder.path()});
  const auto& groups = parts.studies.at(0).groups;
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(name_of(groups[0].labels), "1e-3, train.eval_rows 64");
  EXPECT_EQ(groups[0].exclusive.size(), 2u);
  EXPECT_EQ(name_of(groups[1].labels), "1e-3, train.eval_rows 2");
  EXPECT_EQ(groups[1].exclusive.size(), 1u);
  EXPECT_EQ(name_of(groups[2].labels), "2e-3");
  EXPECT_NO_THROW(figures_of(parts));
}

TEST(ReadParts, RunsThatDifferInWhatTheyLogAreSeedsOfOneModel) {
  const TempFolder folder;
  for (const std::int64_t seed : {1, 2}) {
    const fs::path run = folder / cat("run-seed", seed);
    testing::write_made_run(run, "standard", seed, 2.0);
    Json recipe = read_json_file(run / "recipe.json");
    recipe["train"]["log_every"] = seed;
    write_json_file(run / "recipe.json", recipe);
    add_to_summary(run, {{"conditions", {{"train.lr", 1e-3}, {"train.seed", seed}}}});
  }
  const Parts parts = read_parts({folder.path()});
  EXPECT_EQ(parts.studies.at(0).groups.at(0).standard.size(), 2u);
}

TEST(ReadParts, KnowsWhatAnEvaluatedModelWasTrainedOnAndAsked) {
  const TempFolder folder;
  Json results = Json::parse(kEvaluation);
  results["config"]["trained"] = {{"train.steps", 10}, {"step", 10}};
  results["n-samples"] = {{"piqa", {{"original", 9}, {"effective", 9}}}};
  results["task_hashes"] = {{"piqa", "12"}};
  const Parts parts = read_parts({folder.write("results.json", results.dump())});
  EXPECT_EQ(parts.evaluations.at(0).conditions.values.at("train.steps"), 10);
  EXPECT_EQ(parts.evaluations[0].asked.values.at("piqa's records and prompts"), "12");
}

TEST(ReadParts, TakesWhatIsNamedTwiceOnce) {
  const TempFolder folder;
  testing::write_made_run(folder / "one", "standard", 1, 2.0);
  const Parts parts = read_parts({folder / "one", folder.path(), folder / "one/metrics.jsonl"});
  ASSERT_EQ(parts.studies.size(), 1u);
  EXPECT_EQ(parts.studies[0].groups.at(0).standard.size(), 1u);
  EXPECT_THAT(parts.problems, IsEmpty());
}

TEST(ReadParts, NamesAGroupOfRunsByWhatTheyShare) {
  const std::map<std::string, std::string> names = {
      {"demo/standard-seed1", "804K, demo"},
      {"points/lr=1e-3,attention=exclusive,seed=1337", "804K, lr=1e-3"},
      {"attention=exclusive,size=big,seed=2", "804K, size=big"},
      {"seedling-standards", "804K, seedling-standards"}};
  for (const auto& [path, name] : names) {
    const TempFolder folder;
    testing::write_made_run(folder / path, "standard", 1, 2.0);
    EXPECT_EQ(read_parts({folder / path}).studies.at(0).groups.at(0).labels,
              (Labels{{"model", name}}));
  }
}

/// The first run is read first, and does not know yet.
TEST(ReadParts, KnowsASizeFromAnyRunOfAGroup) {
  const TempFolder folder;
  testing::write_made_run(folder / "exclusive-seed1", "exclusive", 1, 2.0);
  testing::write_made_run(folder / "standard-seed1", "standard", 1, 2.0);
  fs::remove(folder / "exclusive-seed1/summary.json");
  const Parts parts = read_parts({folder.path()});
  ASSERT_EQ(parts.studies.at(0).groups.size(), 1u);
  EXPECT_TRUE(parts.studies[0].groups[0].labels[0].second.starts_with("804K, "));
}

TEST(ReadParts, TellsStudiesOfOneNameApart) {
  const TempFolder folder;
  for (const char* const name : {"short", "long"}) testing::write_sweep(folder / name, {});
  testing::write_sweep(folder / "other", {.name = "other"});
  std::vector<std::string> titles;
  for (const Study& study : read_parts({folder.path()}).studies) titles.push_back(study.title);
  EXPECT_THAT(titles, ElementsAre(::testing::EndsWith("/long"), "", ::testing::EndsWith("/short")));
}

TEST(ReadParts, NamesADamagedPartAndKeepsTheOthers) {
  const TempFolder folder;
  testing::write_sweep(folder.path(), {});
  const std::string point = "points/lr=1e-3,attention=standard,seed=1";
  folder.write(point + "/diagnose.json", "{\"half\": ");
  fs::remove(folder / (point + "/summary.json"));
  fs::remove(folder / "points/lr=2e-3,attention=standard,seed=2/recipe.json");
  const Parts parts = read_parts({folder.path()});
  ASSERT_EQ(parts.problems.size(), 3u);
  EXPECT_THAT(parts.problems[0], HasSubstr(point + "/summary.json"));
  EXPECT_THAT(parts.problems[1], HasSubstr(point + "/diagnose.json"));
  EXPECT_THAT(parts.problems[2], HasSubstr("seed=2/recipe.json"));
  const auto& groups = parts.studies.at(0).groups;
  EXPECT_EQ(groups[0].standard.size(), 3u);  // its curves are there
  EXPECT_EQ(final_losses(groups[0].standard).size(), 2u);
  EXPECT_EQ(groups[1].standard.size(), 2u);
}

TEST(ReadParts, TellsThePointsThatAreNotDone) {
  const TempFolder folder;
  folder.write("sweep.json", R"({"name": "s", "points": [
      {"folder": "points/a", "status": "failed", "error": "the loss is not finite"},
      {"folder": "points/b", "status": "waiting"}]})");
  const Parts parts = read_parts({folder.path()});
  EXPECT_THAT(parts.studies.at(0).points,
              ElementsAre("a: failed, the loss is not finite", "b: waiting"));
}

TEST(ReadParts, SaysWhatIsWrongWithWhatWasNamed) {
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { read_parts({folder / "absent"}); }),
              HasSubstr("absent: expected a file or a folder, found none"));
  EXPECT_THAT(read_parts({folder.path()}).problems.at(0), HasSubstr("holds no run"));
  EXPECT_THAT(read_parts({folder.write("x.json", "{\"a\": 1}")}).problems.at(0),
              HasSubstr("x.json: expected a run's"));
  EXPECT_THAT(read_parts({folder.write("x.json", "{\"a\": ")}).problems.at(0),
              HasSubstr("x.json: expected JSON"));
}

TEST(ReadParts, SaysTheSizeOfWhatIsCompared) {
  const TempFolder folder;
  testing::write_comparison(folder.path(), {});
  EXPECT_EQ(read_parts({folder.path()}).studies.at(0).groups.at(0).labels,
            (Labels{{"model", "837K, demo"}}));
}

TEST(ReadParts, ACheckpointIsNoRunAndAnEmptyFolderIsNamedBesideOtherProblems) {
  const TempFolder folder;
  folder.write("checkpoints/step-1/recipe.json", R"({"model": {}})");
  folder.write("broken.json", "{");
  create_directory(folder / "empty");
  const Parts parts =
      read_parts({folder / "broken.json", folder / "empty", folder / "checkpoints/step-1"});
  ASSERT_EQ(parts.problems.size(), 3u);
  EXPECT_THAT(parts.problems[1], HasSubstr("empty: holds no run"));
  EXPECT_THAT(parts.problems[2], HasSubstr("step-1: holds no run"));
}

/// A part that is valid JSON of wrong types spoils nothing but itself, and is named by its file.
TEST(ReadParts, NamesAPartOfWrongTypes) {
  const std::map<std::string, std::string> damaged = {
      {"diagnosis.json", R"({"attention": [], "layers": []})"},
      {"block.json", R"({"results": [{"length": 64, "mode": "forward"}, []]})"},
      {"mode.json", R"({"results": [{"length": 64, "mode": 1}]})"},
      {"length.json", R"({"results": [{"length": -1, "mode": "forward"}]})"},
      {"run/recipe.json", R"({"model": 1, "train": {"seed": 1}})"},
      {"kind/recipe.json", R"({"model": {"attention": "both"}, "train": {"seed": 1}})"},
      {"seed/recipe.json", R"({"model": {"attention": "standard"}, "train": {"seed": "x"}})"},
      {"compared/compare.json", R"({"name": "c", "runs": [1]})"},
      {"swept/sweep.json", R"({"points": [{"folder": "x", "labels": 1}, []]})"}};
  for (const auto& [name, text] : damaged) {
    const TempFolder folder;
    testing::write_made_run(folder / "whole", "standard", 1, 2.0);
    folder.write(name, text);
    if (name.ends_with("recipe.json"))
      folder.write((fs::path(name).parent_path() / "metrics.jsonl").string(), "");
    const Parts parts = read_parts({folder.path()});
    std::size_t groups = 0;
    for (const Study& study : parts.studies) groups += study.groups.size();
    EXPECT_EQ(groups, 1u) << name;
    ASSERT_FALSE(parts.problems.empty()) << name;
    EXPECT_THAT(parts.problems[0], HasSubstr(name.substr(0, name.find('/')))) << name;
    EXPECT_NO_THROW(figures_of(parts)) << name;
  }
}

TEST(Sizes, AreSaidInTheFieldsWords) {
  EXPECT_EQ(size_text(0.7e9), "0.70B");
  EXPECT_EQ(size_text(1.4e9), "1.4B");
  EXPECT_EQ(size_text(12.34e6), "12.3M");
  EXPECT_EQ(size_text(803968), "804K");
}

}  // namespace
}  // namespace xsa::report
