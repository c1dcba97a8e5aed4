// What a training run measures beside its validation loss: tasks, other texts, what its attention
// repeats.
#pragma once

#include <filesystem>

#include "xsa/study/recipe.h"
#include "xsa/train/trainer.h"

namespace xsa::study {

/// For TrainOptions::evaluate; empty where the recipe's train.eval_texts and train.eval_tasks ask
/// for nothing. Records and texts are read and checked here, so that a mistake costs no training;
/// throws Error or UsageError as xsa eval does. Each task and text gives {"name": "piqa",
/// "metrics": {"acc": 0.6, ...}}.
decltype(train::TrainOptions::evaluate) evaluation(const train::RunConfig& config);

/// For TrainOptions::diagnose: {"layers": [...]} as in diagnose.json, without heads.
decltype(train::TrainOptions::diagnose) diagnosis(const diagnose::DiagnoseConfig& config);

/// All that trainings of a recipe measure beside their validation loss; what it asks for is read
/// once, however many they are. Throws as evaluation.
class Measuring {
 public:
  explicit Measuring(const Recipe& recipe);

  /// For the conditions of a run (xsa/base/conditions.h): the diagnosis's settings, and the hash of
  /// what each task and text asks.
  const Json& conditions() const { return conditions_; }
  /// With evaluate, diagnose, measured, and an end that writes `run_folder`/diagnose.json.
  train::TrainOptions options(const std::filesystem::path& run_folder) const;

 private:
  diagnose::DiagnoseConfig diagnose_;
  decltype(train::TrainOptions::evaluate) evaluate_;
  Json conditions_ = Json::object();
};

}  // namespace xsa::study
