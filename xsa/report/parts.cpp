#include "xsa/report/parts.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <regex>
#include <set>
#include <tuple>

#include "xsa/base/error.h"
#include "xsa/report/evaluated.h"
#include "xsa/report/metrics.h"
#include "xsa/report/run.h"
#include "xsa/report/same_conditions.h"

namespace xsa::report {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 4;  // folders within folders that are looked through

bool has(const Json& json, const char* key, bool (*is_right)(const Json&)) {
  const auto found = json.find(key);
  return found != json.end() && is_right(*found);
}

/// Calls `action`; what it throws becomes a problem, of `path` where it does not say so itself.
template <class Action>
void attempt(std::vector<std::string>& problems, const fs::path& path, const Action& action) {
  try {
    action();
  } catch (const Json::exception& error) {
    problems.push_back(
        cat(path.string(), ": cannot be read as what it seems to be: ", error.what()));
  } catch (const std::exception& error) {
    problems.emplace_back(error.what());
  }
}

/// A run of which recipe.json can be read; what else is wrong is told and left empty.
std::optional<Run> read_run(const fs::path& folder, std::vector<std::string>& problems) {
  std::optional<Run> run;
  const fs::path recipe = folder / "recipe.json", summary = folder / "summary.json";
  attempt(problems, recipe, [&] {
    Run read;
    read.record.folder = folder;
    read.recipe = read_object(recipe);
    const auto table = [&](const char* name) {
      return member(read.recipe, name, "a table", is_table, recipe.string());
    };
    const Json attention = member(table("model"), "attention", "text", is_text, recipe.string());
    check(attention == "standard" || attention == "exclusive", recipe.string(),
          ": expected the attention standard or exclusive, got ", attention.dump());
    read.record.attention = attention.get<std::string>();
    read.record.seed = member(table("train"), "seed", "an integer", is_integer, recipe.string())
                           .get<std::int64_t>();
    run = std::move(read);
  });
  if (!run) return run;
  attempt(problems, summary, [&] {
    check(fs::exists(summary), summary.string(), ": is not there: the run has not ended");
    run->record.summary = read_object(summary);
  });
  attempt(problems, folder / "diagnose.json",
          [&] { run->record.diagnose = read_diagnose(folder / "diagnose.json"); });
  attempt(problems, folder / "metrics.jsonl", [&] {
    Run curves;
    read_metrics(curves, folder / "metrics.jsonl");
    run->train = std::move(curves.train);
    run->validation = std::move(curves.validation);
    run->evaluations = std::move(curves.evaluations);
    run->diagnoses = std::move(curves.diagnoses);
  });
  return run;
}

void add_run(Study& study, const Labels& labels, Run run) {
  auto group = std::find_if(study.groups.begin(), study.groups.end(),
                            [&](const Group& candidate) { return candidate.labels == labels; });
  if (group == study.groups.end()) {
    study.groups.push_back({labels, {}, {}});
    group = study.groups.end() - 1;
  }
  (run.record.attention == "standard" ? group->standard : group->exclusive)
      .push_back(std::move(run));
}

double size_of(const Run& run) {
  const double others = number_at(run.record.summary, "non_embedding_parameters");
  return std::isfinite(others) ? others : number_at(run.record.summary, "parameters");
}

/// The name of a run's folder without attention and seed: "lr=1e-3" of
/// "lr=1e-3,attention=standard,seed=1"; where that is nothing, as of "standard-seed1", the name of
/// the folder around it.
std::string kind_of(const Run& run) {
  const fs::path folder = fs::absolute(run.record.folder).lexically_normal();
  const std::string name = folder.filename().string();
  static const std::regex kAttentionOrSeed(
      "(^|[-,])(attention=)?(standard|exclusive)(?=[-,]|$)|(^|[-,])seed=?[0-9]+(?=[-,]|$)");
  std::string kind = std::regex_replace(name, kAttentionOrSeed, "");
  while (kind.starts_with('-') || kind.starts_with(',')) kind.erase(0, 1);
  return kind.empty() ? folder.parent_path().filename().string() : kind;
}

Study read_comparison(const fs::path& folder, std::vector<std::string>& problems) {
  const fs::path path = folder / "compare.json";
  const Json info = read_object(path);
  Study study;
  study.name = text_in(info, "name", folder.filename().string());
  study.folder = folder;
  study.axes = {{"model", "model"}};
  for (const Json& entry : member(info, "runs", "a list", is_list, path.string())) {
    attempt(problems, path, [&] {
      const Json& place = member(entry, "folder", "text", is_text, path.string());
      auto run = read_run(folder / place.get<std::string>(), problems);
      if (!run) return;
      const Labels labels = {{"model", size_text(size_of(*run)) + ", " + study.name}};
      add_run(study, labels, std::move(*run));
    });
  }
  split_by_conditions(study);
  return study;
}

/// Reads one path after another into the parts.
class Reader {
 public:
  void read(const fs::path& path) {
    check(fs::exists(path), path.string(), ": expected a file or a folder, found none");
    const std::size_t found = found_, problems = parts_.problems.size();
    attempt(parts_.problems, path, [&] { look_at(path, 0); });
    if (found_ == found && parts_.problems.size() == problems)
      parts_.problems.push_back(
          path.string() +
          ": holds no run, comparison, sweep, evaluation, diagnosis or block benchmark");
  }

  Parts take() {
    if (!loose_.empty()) group_loose();
    tell_apart();
    std::stable_sort(parts_.studies.begin(), parts_.studies.end(),
                     [](const Study& a, const Study& b) { return a.figure < b.figure; });
    return std::move(parts_);
  }

 private:
  /// Studies that are called the same, as one sweep at two lengths of training, get their names
  /// too, or their folders where these are the same.
  void tell_apart() {
    const auto called = [](const Study& study) {
      return study.title.empty() ? study.name : study.title;
    };
    std::map<std::string, int> titles, names;
    for (const Study& study : parts_.studies) titles[called(study)] += 1, names[study.name] += 1;
    for (Study& study : parts_.studies)
      if (titles.at(called(study)) > 1)
        study.title =
            called(study) + ", " + (names.at(study.name) > 1 ? study.folder.string() : study.name);
  }

  void look_at(const fs::path& path, int depth) {
    if (!fs::is_directory(path)) return read_file_of(path, depth == 0);
    if (fs::exists(path / "sweep.json")) return read_file_of(path / "sweep.json", true);
    if (fs::exists(path / "compare.json")) return read_file_of(path / "compare.json", true);
    // A checkpoint holds a recipe too.
    if (fs::exists(path / "recipe.json") &&
        (fs::exists(path / "metrics.jsonl") || fs::exists(path / "summary.json")))
      return add_loose(path);
    if (depth == kDeepest) return;
    std::vector<fs::path> entries;
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.is_directory() || entry.path().extension() == ".json")
        entries.push_back(entry.path());
    std::sort(entries.begin(), entries.end());
    for (const fs::path& entry : entries)
      attempt(parts_.problems, entry, [&] { look_at(entry, depth + 1); });
  }

  /// By its content, whatever its name. A file that was not `named` may be anything.
  void read_file_of(const fs::path& path, bool named) {
    const fs::path folder = path.parent_path();
    if (path.extension() == ".jsonl" || path.filename() == "summary.json" ||
        path.filename() == "recipe.json")
      return named ? add_loose(folder) : void();
    const Json json = read_json_file(path);
    if (!json.is_object()) {
      check(!named, path.string(), ": expected a JSON object, got ", json.type_name());
      return;
    }
    const auto is_map = [](const Json& value) { return value.is_object(); };
    if (has(json, "points", is_list)) {
      if (!is_new(folder)) return;
      parts_.studies.push_back(read_sweep(json, folder, parts_.problems));
    } else if (has(json, "runs", is_list) && has(json, "name", is_text)) {
      if (!is_new(folder)) return;
      parts_.studies.push_back(read_comparison(folder, parts_.problems));
    } else if (has(json, "layers", is_list)) {
      if (is_new(path)) parts_.diagnoses.push_back({short_name(path), read_diagnose(path)});
    } else if (has(json, "results", is_list) && is_block(json["results"])) {
      if (!is_new(path)) return;
      check_block(json["results"], path.string());
      parts_.blocks.push_back({short_name(path), json});
    } else if (has(json, "results", is_map) &&
               (json.contains("n-samples") || json.contains("configs") ||
                json.contains("versions"))) {
      if (is_new(path)) parts_.evaluations.push_back(read_evaluation(json, path));
    } else {
      check(!named, path.string(),
            ": expected a run's, comparison's, sweep's, evaluation's, diagnosis's or block "
            "benchmark's JSON, got other keys");
    }
  }

  static bool is_block(const Json& results) {
    return !results.empty() && results[0].is_object() && results[0].contains("length");
  }

  static void check_block(const Json& results, const std::string& where) {
    for (const Json& result : results) {
      check(result.is_object(), where, ": expected objects in \"results\", got ",
            result.type_name());
      const Json& length = member(result, "length", "an integer", is_integer, where);
      check(length.get<double>() > 0, where, ": expected a length above 0, got ", length.dump());
      const Json& mode = member(result, "mode", "text", is_text, where);
      check(mode == "forward" || mode == "forward+backward", where,
            ": expected the mode forward or forward+backward, got ", mode.dump());
    }
  }

  static std::string short_name(const fs::path& path) {
    const std::string folder = fs::absolute(path).parent_path().filename().string();
    return folder.empty() ? path.filename().string() : folder + "/" + path.filename().string();
  }

  /// False for what another path has brought already.
  bool is_new(const fs::path& path) {
    const bool is_first = seen_.insert(fs::weakly_canonical(path)).second;
    found_ += 1;
    return is_first;
  }

  void add_loose(const fs::path& folder) {
    if (!is_new(folder)) return;
    auto run = read_run(folder, parts_.problems);
    if (run) loose_.push_back(std::move(*run));
  }

  /// Runs of one recipe are a group; its name is its size and what its runs' names share.
  void group_loose() {
    Study study;
    study.name = "runs";
    study.is_loose = true;
    study.axes = {{"model", "model"}};
    std::vector<Conditions> classes;
    std::vector<std::pair<double, std::string>> found;  // of each class
    std::vector<std::size_t> places;
    for (const Run& run : loose_) {
      const std::size_t place = places.emplace_back(class_of(run, classes));
      if (place == found.size()) found.emplace_back(size_of(run), kind_of(run));
      if (!std::isfinite(found[place].first)) found[place].first = size_of(run);
    }
    std::map<std::tuple<std::size_t, std::string, std::int64_t>, fs::path> first;
    for (std::size_t i = 0; i < loose_.size(); ++i) {
      Run& run = loose_[i];
      const auto& [size, name] = found[places[i]];
      const fs::path& same =
          first.try_emplace({places[i], run.record.attention, run.record.seed}, run.record.folder)
              .first->second;
      if (same != run.record.folder) {
        parts_.problems.push_back(cat(run.record.folder.string(), ": has the recipe and seed of ",
                                      same.string(), ", which is shown"));
        continue;
      }
      add_run(study, {{"model", size_text(size) + ", " + name}}, std::move(run));
    }
    split_by_conditions(study);
    parts_.studies.push_back(std::move(study));
  }

  Parts parts_;
  std::vector<Run> loose_;
  std::set<fs::path> seen_;
  std::size_t found_ = 0;
};

}  // namespace

std::string name_of(const Labels& labels) {
  std::string name;
  for (const auto& [axis, value] : labels) name += (name.empty() ? "" : ", ") + value;
  return name.empty() ? "all" : name;
}

Study read_sweep(const Json& sweep, const fs::path& folder, std::vector<std::string>& problems) {
  Study study;
  study.name = text_in(sweep, "name", folder.filename().string());
  study.title = text_in(sweep, "title");
  study.figure = text_in(sweep, "figure");
  study.folder = folder;
  const std::string where = (folder / "sweep.json").string();
  if (has(sweep, "axes", is_list))
    for (const Json& axis : sweep["axes"])
      if (text_in(axis, "name") != "attention")
        study.axes.emplace_back(text_in(axis, "name"),
                                text_in(axis, "label", text_in(axis, "name")));
  for (const Json& point : member(sweep, "points", "a list", is_list, where)) {
    attempt(problems, where, [&] {
      const std::string place = text_in(point, "folder");
      const std::string status = text_in(point, "status", "done");
      const std::string error = text_in(point, "error");
      if (status != "done") {
        study.points.push_back(fs::path(place).filename().string() + ": " + status +
                               (error.empty() ? "" : ", " + error));
        return;
      }
      check(!place.empty(), where, ": expected \"folder\" in each point, which one lacks");
      auto run = read_run(folder / place, problems);
      if (!run) return;
      Labels labels;
      if (point.contains("labels"))
        for (const auto& [axis, value] : point["labels"].items()) {
          const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
          if (axis != "attention" || (text != "standard" && text != "exclusive"))
            labels.emplace_back(axis, text);
        }
      add_run(study, labels, std::move(*run));
    });
  }
  split_by_conditions(study);
  return study;
}

Parts read_parts(const std::vector<fs::path>& paths) {
  Reader reader;
  for (const fs::path& path : paths) reader.read(path);
  return reader.take();
}

BySeed final_losses(const std::vector<Run>& runs) {
  BySeed losses;
  for (const Run& run : runs) {
    const double loss = number_at(run.record.summary, "validation_loss");
    if (std::isfinite(loss)) losses[run.record.seed] = loss;
  }
  return losses;
}

std::string size_text(double parameters) {
  if (!std::isfinite(parameters)) return "?";
  if (parameters >= 0.95e8) return format_number(parameters / 1e9, parameters < 1e9 ? 2 : 1) + "B";
  if (parameters >= 0.95e6) return format_number(parameters / 1e6, 1) + "M";
  return format_number(parameters / 1e3, 0) + "K";
}

}  // namespace xsa::report
