#include "xsa/report/comparison.h"

#include "xsa/base/error.h"
#include "xsa/report/run.h"

namespace xsa::report {
namespace {

namespace fs = std::filesystem;

Run load_run(const fs::path& folder, const Json& entry, const std::string& where) {
  check(entry.is_object(), where, ": expected an object for each run, got ", entry.type_name());
  Run run;
  run.record.attention = member(entry, "attention", "text", is_text, where).get<std::string>();
  run.record.seed = member(entry, "seed", "an integer", is_integer, where).get<std::int64_t>();
  run.record.folder = folder / member(entry, "folder", "text", is_text, where).get<std::string>();
  run.record.summary = read_object(run.record.folder / "summary.json");
  run.record.diagnose = read_diagnose(run.record.folder / "diagnose.json");
  run.recipe = read_object(run.record.folder / "recipe.json");
  read_metrics(run, run.record.folder / "metrics.jsonl");
  return run;
}

}  // namespace

Comparison load_comparison(const fs::path& folder) {
  const fs::path path = folder / "compare.json";
  Comparison comparison{folder, read_object(path), {}};
  const std::string where = path.string();
  member(comparison.info, "name", "text", is_text, where);
  for (const Json& entry : member(comparison.info, "runs", "a list", is_list, where))
    comparison.runs.push_back(load_run(folder, entry, where));
  check(!comparison.runs.empty(), where, ": expected at least one run in \"runs\", got none");
  const Run& first = comparison.runs.front();
  for (const Run& run : comparison.runs) {
    const auto found = differences(first.conditions(), run.conditions(), kSeedAndAttention);
    check(found.empty(), folder.string(), ": ", run.record.folder.filename().string(),
          " cannot be compared with ", first.record.folder.filename().string(),
          ", since they differ in more than attention and seed: ", list(found, "here"),
          "; xsa compare --overwrite trains both kinds anew");
  }
  return comparison;
}

}  // namespace xsa::report
