// What a run's messages advise: commands that work as they stand.
#pragma once

#include <string>

#include "xsa/train/trainer.h"

namespace xsa::train {

/// After a stop.
std::string how_to_continue(const TrainOptions& options);

/// After a number that is not finite.
std::string how_to_stay_finite(const TrainConfig& config);

}  // namespace xsa::train
