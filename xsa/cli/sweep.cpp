#include "xsa/study/sweep.h"

#include <algorithm>
#include <cstdio>

#include "xsa/base/error.h"
#include "xsa/base/progress.h"
#include "xsa/cli/command.h"
#include "xsa/report/set.h"

namespace xsa::cli {
namespace {

/// Why a training of this recipe would fail before its first step; "" if it would not.
std::string fault_of(const train::RunConfig& config) {
  try {
    train::resolve(config);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

Json planned(const study::Sweep& sweep, const std::vector<study::SweepPoint>& points) {
  Json list = Json::array();
  for (const study::SweepPoint& point : points) {
    const train::RunConfig config = study::run_config(sweep, point);
    Json row = {{"name", point.name()},
                {"labels", point.labels},
                {"settings", point.settings},
                {"seed", point.seed},
                {"tokens", study::training_tokens(config)}};
    if (const std::string fault = fault_of(config); !fault.empty()) row["fault"] = fault;
    list.push_back(row);
  }
  return list;
}

double print_points(const Json& points) {
  double tokens = 0;
  for (const Json& point : points) {
    tokens += point.at("tokens").get<double>();
    std::string settings;
    for (const auto& [name, value] : point.at("settings").items())
      settings += cat("  ", name, "=", value.dump());
    std::printf("%s%s\n", point.at("name").get<std::string>().c_str(), settings.c_str());
    if (point.contains("fault"))
      std::printf("  would fail: %s\n", point.at("fault").get<std::string>().c_str());
  }
  return tokens;
}

void print_plan(const study::Sweep& sweep, bool json) {
  const Json first = planned(sweep, study::first_points(sweep));
  const Json later = planned(
      sweep, study::later_points(sweep, [](const study::SweepPoint&) { return std::nullopt; }));
  if (json) {
    std::printf("%s\n", Json{{"recipe", study::to_json(sweep.base)},
                             {"points", first},
                             {"points_with_the_best", later}}
                            .dump(2)
                            .c_str());
    return;
  }
  double tokens = print_points(first);
  if (!later.empty()) {
    std::printf("then, with the best %s of these:\n", sweep.reuse_best->of.c_str());
    tokens += print_points(later);
  }
  const std::size_t count = first.size() + later.size();
  std::printf("%zu %s, %s tokens in all\n", count, count == 1 ? "training" : "trainings",
              short_count(tokens).c_str());
}

}  // namespace

void sweep(const Arguments& arguments) {
  std::vector<study::Override> overrides = arguments.overrides;
  if (!arguments.text.empty()) overrides.insert(overrides.begin(), {"data.source", arguments.text});
  const study::Sweep wanted = study::load_sweep(arguments.recipe, overrides, arguments.seeds);
  if (!wanted.note.empty()) std::fprintf(stderr, "xsa: %s\n", wanted.note.c_str());
  const std::filesystem::path folder = run_folder(arguments);
  if (arguments.dry_run) return print_plan(wanted, arguments.json);
  const Json result =
      study::sweep(wanted, folder, {.jobs = arguments.jobs, .overwrite = arguments.overwrite});
  if (arguments.json)
    std::printf("%s\n", result.dump(2).c_str());
  else
    std::printf("\n%s\n", report::sweep_table(result, folder).c_str());
  const std::filesystem::path page = folder / "report.html";
  report::write_set_report({folder}, page);
  if (!arguments.json) std::printf("Report: %s\n", page.c_str());
  const Json& points = result.at("points");
  const auto failed = std::ranges::count_if(
      points, [](const Json& point) { return point.at("status") == "failed"; });
  check(failed == 0, folder.string(), ": ", failed, " of ", points.size(),
        " points failed, each with its error above; the same command ",
        arguments.overwrite ? "without --overwrite " : "",
        "tries them again, logs/ has all they said");
}

}  // namespace xsa::cli
