#include "xsa/study/compare.h"

#include <array>
#include <cstdio>
#include <list>
#include <regex>
#include <string>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/owned_folder.h"
#include "xsa/base/system.h"
#include "xsa/report/comparison.h"
#include "xsa/study/evaluation.h"
#include "xsa/study/same_conditions.h"
#include "xsa/train/run_folder.h"
#include "xsa/train/trainer.h"

namespace xsa::study {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 2> kKinds = {"standard", "exclusive"};
constexpr char kCompareCommand[] = "xsa compare";

/// One training of the comparison.
struct Member {
  std::string kind, name;
  std::int64_t seed = 0;
  train::RunConfig config;
};

/// The kinds take turns in going first, so that a machine that slows down favours neither.
std::vector<Member> members_of(const Recipe& recipe) {
  std::vector<Member> members;
  for (std::int64_t pair = 0; pair < recipe.compare.seeds; ++pair)
    for (const std::int64_t turn : {0, 1}) {
      Member member{.kind = kKinds[static_cast<std::size_t>((turn + pair) % 2)],
                    .name = "",
                    .seed = recipe.run.train.seed + pair,
                    .config = recipe.run};
      member.name = cat(member.kind, "-seed", member.seed);
      member.config.model.attention = member.kind;
      member.config.train.seed = member.seed;
      member.config = train::resolve(member.config);
      members.push_back(std::move(member));
    }
  return members;
}

/// The folders of every run that a comparison made here, also of seeds that are not asked for.
std::vector<fs::path> runs_in(const fs::path& folder) {
  static const std::regex kName("(standard|exclusive)-seed[0-9]+");
  std::vector<fs::path> runs;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && !entry.is_symlink() &&
        std::regex_match(entry.path().filename().string(), kName) &&
        kind_of(entry.path()) == FolderKind::kRun)
      runs.push_back(entry.path());
  return runs;
}

/// Removes the runs and what was made of them, once nobody works in any of them.
void clear(const fs::path& folder) {
  const std::vector<fs::path> runs = runs_in(folder);
  std::list<FolderLock> locks;
  for (const fs::path& run : runs) locks.emplace_back(run, kCompareCommand);
  for (const char* file : {"compare.json", "report.html"}) fs::remove(folder / file);
  for (const fs::path& run : runs) train::clear_run_folder(run);
}

/// How the command goes on after a stop: what was to be replaced is gone by then.
std::string how_to_continue(bool overwrite) {
  return overwrite ? "The same command without --overwrite continues the comparison"
                   : "The same command continues the comparison";
}

}  // namespace

Json compare(const Recipe& recipe, const fs::path& folder, bool overwrite) {
  // All that can be refused comes first, and touches nothing.
  const std::vector<Member> members = members_of(recipe);
  check_kind(folder, FolderKind::kComparison);
  const Measuring measuring(recipe);
  SameConditions same(folder, recipe.run.data.source);
  {
    const data::Dataset dataset = data::open_dataset(recipe.run.data);
    for (const Member& member : members)
      same.want(member.name, member.config, dataset, measuring.conditions());
  }
  const FolderLock lock(folder, kCompareCommand);
  check_kind(folder, FolderKind::kComparison);  // again: now nobody interferes
  for (const Member& member : members) check_kind(folder / member.name, FolderKind::kRun);
  const bool continues = kind_of(folder) == FolderKind::kComparison && !overwrite;
  if (continues) {
    for (const Member& member : members)
      same.refuse(member.name, same.differences_of(member.name, folder / member.name));
    std::fprintf(stderr,
                 "%s holds this comparison: continuing it, finished runs are kept (--overwrite "
                 "starts anew)\n",
                 folder.c_str());
  } else {
    clear(folder);
  }
  const Json recipe_json = to_json(recipe);
  write_json_file(folder / "recipe.json", recipe_json);

  std::vector<report::RunRecord> runs;
  Json run_list = Json::array(), seeds = Json::array();
  for (const Member& member : members) {
    const fs::path run = folder / member.name;
    train::TrainOptions options = measuring.options(run);
    options.label = cat("[", runs.size() + 1, "/", members.size(), "] ", member.kind,
                        recipe.compare.seeds > 1 ? cat(" seed ", member.seed) : "");
    options.resume = true;
    options.how_to_continue = how_to_continue(overwrite);
    const Json summary = train::train(member.config, run, options);
    same.refuse(member.name, same.differences_of(member.name, run));
    runs.push_back({member.kind, member.seed, run, summary, read_json_file(run / "diagnose.json")});
    run_list.push_back(
        {{"attention", member.kind}, {"seed", member.seed}, {"folder", member.name}});
    if (seeds.empty() || seeds.back() != member.seed) seeds.push_back(member.seed);
  }

  // Runs that began with the same name's weights may have found others there.
  for (const report::RunRecord& run : runs)
    same.refuse(run.folder.filename().string(),
                differences(conditions_of({}, runs.front().summary), conditions_of({}, run.summary),
                            kSeedAndAttention));

  Json result = {{"name", folder.filename().string()},
                 {"date", utc_now()},
                 {"machine", machine_info()},
                 {"commit", build_commit()},
                 {"recipe", recipe_json},
                 {"seeds", seeds},
                 {"runs", run_list}};
  result.update(report::summarize_runs(runs));
  write_json_file(folder / "compare.json", result);
  report::write_report(folder);
  return result;
}

}  // namespace xsa::study
