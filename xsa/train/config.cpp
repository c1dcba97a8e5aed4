#include "xsa/train/config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "xsa/base/parallel.h"

namespace xsa::train {
namespace {

/// Sets a table's configuration from `json`, where the table is there.
template <class Config>
void apply_table(Config& config, const Json& json, const std::string& table) {
  if (json.contains(table)) apply_json(config, json.at(table), table);
}

}  // namespace

void TrainConfig::validate() const {
  TrainConfig checked;
  apply_json(checked, xsa::to_json(*this), "train");  // the fields' own ranges
  check_usage(warmup_steps <= steps, "train.warmup_steps: expected at most train.steps (", steps,
              "), got ", warmup_steps, "; the peak would never be reached");
  check_usage(threads <= kMostThreads, "train.threads: expected at most ", kMostThreads, ", got ",
              threads, "; 0 takes every core that the process may use");
  check_usage(
      eval_tasks.empty() || !eval_task_data.empty(),
      "train.eval_task_data: expected the folder that holds the records of train.eval_tasks "
      "('",
      eval_tasks, "'), got none; xsa eval --help says which files");
}

double learning_rate(const TrainConfig& config, std::int64_t step) {
  const std::int64_t peak = std::max<std::int64_t>(config.warmup_steps, 1) - 1;
  if (step < peak)
    return config.lr * static_cast<double>(step + 1) / static_cast<double>(config.warmup_steps);
  const double decay_steps = static_cast<double>(config.steps - 1 - peak);
  if (decay_steps <= 0) return config.lr;
  const double progress = std::min(1.0, static_cast<double>(step - peak) / decay_steps);
  const double floor = config.min_lr_ratio * config.lr;
  return floor + (config.lr - floor) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

Json to_json(const RunConfig& config) {
  return {{"model", xsa::to_json(config.model)},
          {"data", xsa::to_json(config.data)},
          {"train", xsa::to_json(config.train)}};
}

RunConfig run_config_from_json(const Json& json) {
  check_usage(json.is_object(), "recipe: expected the tables model, data and train, got ",
              json.dump());
  const std::vector<std::string> tables = {"model", "data", "train"};
  for (const auto& [table, settings] : json.items()) {
    check_usage(std::find(tables.begin(), tables.end(), table) != tables.end(),
                "recipe: unknown table '", table, "'", did_you_mean(table, tables),
                "; expected model, data and train");
  }
  RunConfig config;
  apply_table(config.model, json, "model");
  apply_table(config.data, json, "data");
  apply_table(config.train, json, "train");
  return config;
}

RunConfig resolve(const RunConfig& wanted) {
  RunConfig config = run_config_from_json(to_json(wanted));
  config.train.validate();
  const auto tokenizer = text::make_tokenizer(config.data.tokenizer);
  const std::int64_t needed = tokenizer->vocabulary_size();
  if (config.model.vocab_size == 0) config.model.vocab_size = needed;
  check_usage(config.model.vocab_size >= needed, "model.vocab_size: expected at least ", needed,
              ", the size of tokenizer '", tokenizer->name(), "', got ", config.model.vocab_size,
              "; 0 takes the tokenizer's");
  config.model.validate();
  return config;
}

}  // namespace xsa::train
