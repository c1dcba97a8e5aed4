// One training run, from a configuration to a run folder (docs/run-folder.md):
//   recipe.json  metrics.jsonl  summary.json  checkpoints/
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/model/gpt.h"
#include "xsa/train/config.h"

namespace xsa::train {

struct TrainOptions {
  std::string label = "train";  // before the progress bar
  bool resume = false;  // continue from the newest whole checkpoint; without any, start anew
  bool overwrite =
      false;  // replace an existing run; else an existing run without resume is a UsageError
  /// What the caller measures beside the loss, for the run's conditions (xsa/base/conditions.h):
  /// {"diagnose.sequences": 64, "piqa": "1f3a..."}.
  Json measured = Json::object();
  /// Told when the run is stopped: the command that continues it. "" for that of xsa train.
  std::string how_to_continue;
  /// Called after each optimizer step, before its metrics and checkpoint, with the number of
  /// finished steps.
  std::function<void(std::int64_t step)> after_step;
  /// Called after each validation: what is measured beside it (the caller wires evaluation in).
  /// Every object becomes a line of type "eval" in metrics.jsonl; the last ones stand in
  /// summary.json. Nothing if a signal to stop cut it short: it is called again when the run goes
  /// on.
  std::function<std::optional<std::vector<Json>>(const model::Gpt& model)> evaluate;
  /// Called after every train.diagnose_every steps and at the end, unless that is 0: what it
  /// returns stands in a line of type "diagnose" in metrics.jsonl. Nothing, as for evaluate, if a
  /// signal cut it short.
  std::function<std::optional<Json>(const model::Gpt& model, const data::Dataset& dataset)>
      diagnose;
  /// Called with the final model; what it returns is merged into summary.json (the caller wires
  /// diagnosis in).
  std::function<Json(const model::Gpt& model, const data::Dataset& dataset)> at_end;
};

/// Trains and returns the summary, also written to summary.json. A finished run with resume returns
/// its summary at once. Throws Interrupted after saving when asked to stop; Error when loss or
/// gradient norm is not finite (before the update; the last good checkpoint is named); UsageError
/// when a resumed run was trained or measured under other conditions. Nothing of a run is replaced
/// before the new one's recipe, data and model are there.
Json train(const RunConfig& config, const std::filesystem::path& run_folder,
           const TrainOptions& options = {});

}  // namespace xsa::train
