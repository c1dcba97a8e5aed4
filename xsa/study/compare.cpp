#include "xsa/study/compare.h"

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/system.h"
#include "xsa/report/comparison.h"
#include "xsa/study/evaluation.h"
#include "xsa/study/same_text.h"
#include "xsa/train/trainer.h"

namespace xsa::study {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 2> kKinds = {"standard", "exclusive"};

/// Leaves `folder` empty, or holding an earlier part of this very comparison.
void open_folder(const Json& recipe, const fs::path& folder, bool overwrite) {
  const fs::path recipe_file = folder / "recipe.json";
  if (fs::exists(folder) && !fs::is_empty(folder)) {
    check_usage(fs::exists(recipe_file), folder.string(),
                ": expected a new folder or one that xsa compare made, found other files; choose "
                "another --name");
    Json before = to_json(Recipe());  // an older recipe has the defaults of newer settings
    before.merge_patch(read_json_file(recipe_file));
    const std::vector<std::string> changed = differences(recipe, before);
    if (changed.empty() && !overwrite) {
      std::fprintf(stderr,
                   "%s holds this comparison: continuing it, finished runs are kept (--overwrite "
                   "starts anew)\n",
                   folder.c_str());
      return;
    }
    std::string list;
    for (const std::string& row : changed) list += "\n  " + row;
    check_usage(overwrite, folder.string(), " holds a comparison with another recipe:", list,
                "\nchoose another --name, or --overwrite to replace it");
  }
  write_json_file(recipe_file, recipe);
}

}  // namespace

void diagnose_into(const fs::path& run_folder, const model::Gpt& model,
                   const data::Dataset& dataset, const diagnose::DiagnoseConfig& config) {
  write_json_file(run_folder / "diagnose.json",
                  diagnose::diagnose(model, diagnose::split_of(dataset, config), config));
}

Json compare(const Recipe& recipe, const fs::path& folder, bool overwrite) {
  const Json recipe_json = to_json(recipe);
  open_folder(recipe_json, folder, overwrite);

  const auto evaluate = evaluation(recipe.run);
  std::vector<report::RunRecord> runs;
  Json run_list = Json::array(), seeds = Json::array();
  const std::int64_t total = 2 * recipe.compare.seeds;
  for (std::int64_t pair = 0; pair < recipe.compare.seeds; ++pair) {
    const std::int64_t seed = recipe.run.train.seed + pair;
    seeds.push_back(seed);
    for (const std::size_t turn : {0, 1}) {
      // The kinds take turns in going first, so that a machine that slows down favours neither.
      const std::string kind = kKinds[(turn + static_cast<std::size_t>(pair)) % 2];
      train::RunConfig config = recipe.run;
      config.model.attention = kind;
      config.train.seed = seed;
      const std::string name = cat(kind, "-seed", seed);
      train::TrainOptions options;
      options.label = cat("[", runs.size() + 1, "/", total, "] ", kind,
                          recipe.compare.seeds > 1 ? cat(" seed ", seed) : "");
      options.resume = !overwrite;
      options.overwrite = overwrite;  // removes a run's own files, nothing else
      options.evaluate = evaluate;
      options.diagnose = diagnosis(recipe.diagnose);
      options.at_end = [&](const model::Gpt& model, const data::Dataset& dataset) {
        diagnose_into(folder / name, model, dataset, recipe.diagnose);
        return Json::object();
      };
      const Json summary = train::train(config, folder / name, options);
      runs.push_back(
          {kind, seed, folder / name, summary, read_json_file(folder / name / "diagnose.json")});
      run_list.push_back({{"attention", kind}, {"seed", seed}, {"folder", name}});
    }
  }

  std::vector<TrainedText> texts;
  for (const report::RunRecord& run : runs)
    texts.push_back({run.folder.filename().string(), run.summary.at("data_sha256")});
  check_same_text(folder, recipe.run.data.source, texts);

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
