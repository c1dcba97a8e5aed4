// `xsa list RUNS`: what lies in a folder of results, one line each.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/base/parse_json.h"
#include "xsa/base/progress.h"
#include "xsa/checkpoint/runs.h"
#include "xsa/cli/command.h"

namespace xsa::cli {

namespace {

constexpr char kListExamples[] = R"(Examples:
  xsa list                        every run, comparison and sweep in runs/
  xsa list runs/demo --json       those of one comparison, for a script

Best: the lowest validation loss and its step, whose checkpoint xsa generate RUN@best takes. What is not known is –.)";

namespace fs = std::filesystem;

struct ListOptions {
  std::string folder = "runs";
  bool json = false;
};

Json read_or_null(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return nullptr;
  const Json json = try_parse_json(read_file(path));
  return json.is_discarded() ? Json() : json;
}

Json at(const Json& json, const char* key) {
  return json.is_object() ? json.value(key, Json()) : Json();
}

/// Seconds since the newest of the run's files that grow was written.
Json age_of(const fs::path& folder) {
  Json age;
  for (const char* const name : {"metrics.jsonl", "summary.json", "recipe.json"}) {
    std::error_code error;
    const auto time = fs::last_write_time(folder / name, error);
    if (error) continue;
    const std::chrono::duration<double> passed = fs::file_time_type::clock::now() - time;
    if (age.is_null() || passed.count() < age.get<double>()) age = passed.count();
  }
  return age;
}

/// Adds what the lines of metrics.jsonl tell: the newest losses and the lowest. A last line may be
/// cut short.
void add_metrics(const fs::path& path, Json& row) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return;
  const std::string text = read_file(path);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const Json line = try_parse_json(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    const Json loss = at(line, "loss"), step = at(line, "step");
    if (!step.is_number() || !loss.is_number()) continue;
    row["step"] = step;
    if (at(line, "type") == "train") row["train_loss"] = loss;
    if (at(line, "type") != "validation") continue;
    row["validation_loss"] = loss;
    if (row["best_validation_loss"].is_number() && loss >= row["best_validation_loss"]) continue;
    row["best_validation_loss"] = loss;
    row["best_step"] = step;
  }
}

Json row_of(const fs::path& folder, const std::string& kind, const fs::path& part_of) {
  const Json recipe = read_or_null(folder / "recipe.json");
  const bool is_done = read_or_null(folder / "summary.json").is_object();
  Json row = {{"path", folder.string()},
              {"kind", kind},
              {"part_of", part_of.empty() ? Json() : Json(part_of.string())},
              {"attention", at(at(recipe, "model"), "attention")},
              {"seed", at(at(recipe, "train"), "seed")},
              {"step", 0},
              {"steps", at(at(recipe, "train"), "steps")},
              {"train_loss", nullptr},
              {"validation_loss", nullptr},
              {"best_validation_loss", nullptr},
              {"best_step", nullptr},
              {"is_done", is_done},
              {"is_readable", recipe.is_object()},
              {"age_s", age_of(folder)}};
  add_metrics(folder / "metrics.jsonl", row);
  return row;
}

/// What a folder is beside a run; "" for others.
std::string study_kind(const fs::path& folder) {
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::exists(folder / name, ignored); };
  return has("sweep.json") || has("points") ? "sweep" : has("compare.json") ? "comparison" : "";
}

/// The comparison or the sweep that a run lies in.
std::pair<fs::path, std::string> study_of(const fs::path& run, const fs::path& root) {
  fs::path folder = run;
  while (folder != root && folder.has_parent_path()) {
    folder = folder.parent_path();
    const std::string kind = study_kind(folder);
    if (!kind.empty()) return {folder, kind};
    // A comparison that has not ended has no compare.json, but a recipe of both kinds.
    if (at(read_or_null(folder / "recipe.json"), "compare").is_object())
      return {folder, "comparison"};
  }
  return {};
}

Json rows_in(const fs::path& root) {
  std::vector<fs::path> runs = checkpoint::runs_below(root);
  if (checkpoint::is_run(root)) runs.insert(runs.begin(), root);
  Json rows = Json::array();
  for (const fs::path& run : runs) {
    const auto [study, kind] = study_of(run, root);
    rows.push_back(row_of(run, kind.empty() ? "run" : "run of a " + kind, study));
  }
  return rows;
}

std::string loss_text(const Json& loss) {
  return loss.is_number() ? fixed(loss.get<double>(), 4) : "–";
}

/// "0:42", "3:07:11", "5 days"
std::string age_text(const Json& seconds) {
  constexpr double kDay = 86400;
  if (!seconds.is_number()) return "–";
  const double value = std::max(0.0, seconds.get<double>());
  if (value < 2 * kDay) return short_time(value);
  return cat(static_cast<std::int64_t>(value / kDay), " days");
}

std::int64_t columns_of(const std::string& text) {
  return std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; });
}

void print_table(const Json& rows, const fs::path& root) {
  std::vector<std::vector<std::string>> table = {
      {"run", "attention", "steps", "training", "validation", "best", "age", "of a"}};
  for (const Json& row : rows) {
    const std::string path =
        fs::path(row.at("path").get<std::string>()).lexically_relative(root).string();
    const std::string steps =
        row.at("steps").is_number() ? row.at("steps").dump() : std::string("?");
    const Json& best = row.at("best_step");
    const auto kind = row.at("kind").get<std::string>();
    table.push_back({path == "." ? root.filename().string() : path,
                     row.at("attention").is_string() ? row.at("attention").get<std::string>() : "–",
                     row.at("is_done").get<bool>() ? steps + ", done"
                                                   : cat(row.at("step").dump(), " of ", steps),
                     loss_text(row.at("train_loss")), loss_text(row.at("validation_loss")),
                     best.is_number()
                         ? cat(loss_text(row.at("best_validation_loss")), " at ", best.dump())
                         : "–",
                     age_text(row.at("age_s")),
                     kind == "run" ? "" : kind.substr(std::string_view("run of a ").size())});
  }
  std::vector<std::int64_t> widths(table.front().size());
  for (const auto& cells : table)
    for (std::size_t i = 0; i < cells.size(); ++i)
      widths[i] = std::max(widths[i], columns_of(cells[i]));
  for (const auto& cells : table) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      line += cells[i];
      line.append(static_cast<std::size_t>(widths[i] - columns_of(cells[i]) + 2), ' ');
    }
    std::printf("%s\n", line.substr(0, line.find_last_not_of(' ') + 1).c_str());
  }
}

void run(const ListOptions& options) {
  fs::path root = options.folder;
  if (!root.has_filename()) root = root.parent_path();  // without a final '/'
  std::error_code ignored;
  check_usage(fs::is_directory(root, ignored), root.string(),
              ": expected a folder of runs, found no folder; xsa train and xsa compare make runs/");
  const Json rows = rows_in(root);
  if (options.json) {
    std::printf("%s\n", rows.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else if (rows.empty()) {
    std::printf("%s holds no run\n", root.c_str());
  } else {
    print_table(rows, root);
  }
}

}  // namespace

std::function<void()> declare_list(CommandLine& command) {
  const auto options = std::make_shared<ListOptions>();
  command.add_option("folder", options->folder, "a folder of runs, or one run")->check(not_empty());
  command.add_flag("--json", options->json, "print the runs as JSON");
  command.footer(kListExamples);
  return [options] { run(*options); };
}

}  // namespace xsa::cli
