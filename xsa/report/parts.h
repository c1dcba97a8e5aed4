// What a report on a set is made from: the runs, sweeps, evaluations, diagnoses and block
// benchmarks that some paths hold, read as far as they can be. Not for figures: those are
// figures.h.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "xsa/report/comparison.h"
#include "xsa/report/margin.h"

namespace xsa::report {

/// Axis and value, in a sweep's order: {{"lr", "5e-4"}}. The axis "attention" of two values is not
/// among them.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// Runs that differ in attention and seed alone: they stand under the same conditions
/// (xsa/base/conditions.h).
struct Group {
  Labels labels;
  std::vector<Run> standard, exclusive;

  const std::vector<Run>& runs(std::string_view attention) const {
    return attention == "standard" ? standard : exclusive;
  }
};

/// "5e-4, tokens"
std::string name_of(const Labels& labels);

/// A comparison, a sweep, or the runs that were named one by one.
struct Study {
  std::string name, title;
  std::string figure;  // a sweep's: "fig3", ..., "variants", ""
  std::filesystem::path folder;
  Labels axes;  // name and label of each, but the axis "attention"
  std::vector<Group> groups;
  std::vector<std::string> points;  // of a sweep, those that are not done: name and reason
  bool is_loose = false;            // runs that were named one by one
};

/// One model's results.json.
struct Evaluated {
  std::string name, attention;  // "" where it is no model of ours
  std::string key;              // what two models share that differ in attention and seed alone
  double parameters = 0;
  std::map<std::string, std::map<std::string, double>> tasks;  // "piqa" -> "acc" -> 0.62
  Conditions conditions;  // of the model: shape, training, step
  /// What each task asked: {"piqa": "1838 records, 1f3a..."}. Tasks that one lacks may differ.
  Conditions asked{Json::object(), false};
};

/// A JSON file with its name for people.
struct NamedJson {
  std::string name;
  Json json;
};

struct Parts {
  std::vector<Study> studies;
  std::vector<Evaluated> evaluations;
  std::vector<NamedJson> diagnoses, blocks;
  std::vector<std::string> problems;  // what is missing or damaged

  bool is_one_study() const {
    return studies.size() == 1 && evaluations.empty() && diagnoses.empty() && blocks.empty();
  }
};

/// Throws Error for a path that does not exist; what else is wrong is among the problems.
Parts read_parts(const std::vector<std::filesystem::path>& paths);

/// sweep.json's points, those that are done with their runs.
Study read_sweep(const Json& sweep, const std::filesystem::path& folder,
                 std::vector<std::string>& problems);

/// Final validation losses, the finite ones.
BySeed final_losses(const std::vector<Run>& runs);

/// "0.70B", "12.3M", "836K"
std::string size_text(double parameters);

}  // namespace xsa::report
