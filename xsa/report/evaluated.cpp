#include "xsa/report/evaluated.h"

#include <map>
#include <string>

#include "xsa/base/error.h"
#include "xsa/report/metrics.h"
#include "xsa/report/run.h"

namespace xsa::report {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::map<std::string, double>> tasks_of(const Json& results) {
  std::map<std::string, std::map<std::string, double>> tasks;
  for (const auto& [task, figures] : results.items()) {
    if (!figures.is_object()) continue;
    for (const auto& [key, value] : figures.items()) {
      const std::string metric = key.substr(0, key.find(','));  // lm-eval's "acc,none"
      if (value.is_number() && (metric == "acc" || metric == "acc_norm" || metric == "acc_stderr"))
        tasks[task][metric] = value.get<double>();
    }
  }
  return tasks;
}

/// What each task asked, as far as the file tells.
Conditions asked_of(const Json& results) {
  Conditions asked{Json::object(), false};
  const auto add = [&](const char* table, const char* end) {
    const Json values = results.value(table, Json());
    if (!values.is_object()) return;
    for (const auto& [task, value] : values.items()) asked.values[task + end] = value;
  };
  add("n-samples", "'s records");
  add("n-shot", "'s shots");
  add("task_hashes", "'s records and prompts");
  return asked;
}

}  // namespace

Evaluated read_evaluation(const Json& results, const fs::path& path) {
  Evaluated model;
  model.name = text_in(results, "model_name", path.parent_path().filename().string());
  const Json config = results.value("config", Json::object());
  model.parameters = number_at(config, "model_num_parameters");
  Json shape = config.is_object() ? config.value("model_config", Json()) : Json();
  model.attention = text_in(shape, "attention");
  if (shape.is_object()) shape.erase("attention");
  model.key = shape.is_object() ? shape.dump() : path.string();
  // An earlier program told nothing of the training.
  const Json trained = config.is_object() ? config.value("trained", Json()) : Json();
  model.conditions = {trained.is_object() ? trained : Json::object(), trained.is_object()};
  model.asked = asked_of(results);
  model.tasks = tasks_of(results.at("results"));
  check(!model.tasks.empty(), path.string(), ": expected a task with \"acc\", found none");
  return model;
}

}  // namespace xsa::report
