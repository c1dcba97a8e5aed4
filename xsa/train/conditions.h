// What a run's results depend on, as its summary.json and its checkpoints record it
// (xsa/base/conditions.h has the rule).
#pragma once

#include "xsa/base/json.h"
#include "xsa/data/dataset.h"
#include "xsa/train/config.h"

namespace xsa::train {

/// The settings that can change a result: {"train.lr": 0.002, ...}.
Json settings(const RunConfig& config);

/// Of a resolved recipe on this data: settings, the data's hash, validation rows, arithmetic, and
/// what else is measured. Throws UsageError where no batch or no validation row fits into the data.
Json conditions(const RunConfig& config, const data::Dataset& dataset, const Json& measured);

}  // namespace xsa::train
