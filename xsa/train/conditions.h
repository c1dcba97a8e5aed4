// What a run's results depend on, as its summary.json and its checkpoints record it
// (xsa/base/conditions.h has the rule).
#pragma once

#include "xsa/base/json.h"
#include "xsa/data/dataset.h"
#include "xsa/train/config.h"

namespace xsa::train {

/// Where a run begins with another's weights (train.from), their hash stands under it; of a run
/// that is yet to begin, what train.from names.
inline constexpr const char* kOrigin = "origin_sha256";

/// The settings that can change a result: {"train.lr": 0.002, ...}.
Json settings(const RunConfig& config);

/// Of a resolved recipe on this data: settings, the data's hash, validation rows, arithmetic, and
/// what else is measured. Throws UsageError where no batch or no validation row fits into the data.
Json conditions(const RunConfig& config, const data::Dataset& dataset, const Json& measured);

/// What a run began with is its own, whatever became of the place it came from: where an origin is
/// wanted and recorded, the recorded one is taken for the wanted.
void settle_origin(Json& wanted, const Json& recorded);

}  // namespace xsa::train
