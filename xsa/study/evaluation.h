// What a training run measures beside its validation loss: tasks, other texts, what its attention
// repeats.
#pragma once

#include "xsa/diagnose/diagnose.h"
#include "xsa/train/trainer.h"

namespace xsa::study {

/// For TrainOptions::evaluate; empty where the recipe's train.eval_texts and train.eval_tasks ask
/// for nothing. Records and texts are read and checked here, so that a mistake costs no training;
/// throws Error or UsageError as xsa eval does. Each task and text gives {"name": "piqa",
/// "metrics": {"acc": 0.6, ...}}.
decltype(train::TrainOptions::evaluate) evaluation(const train::RunConfig& config);

/// For TrainOptions::diagnose: {"layers": [...]} as in diagnose.json, without heads.
decltype(train::TrainOptions::diagnose) diagnosis(const diagnose::DiagnoseConfig& config);

}  // namespace xsa::study
