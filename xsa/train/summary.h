// What a finished run says of itself (docs/run-folder.md: summary.json).
#pragma once

#include "xsa/base/json.h"
#include "xsa/train/config.h"
#include "xsa/train/standing.h"

namespace xsa::train {

/// Training tokens of one optimizer step.
std::int64_t step_tokens(const RunConfig& config);

Json summary(const RunConfig& config, const Standing& at_end, double tokens_per_s);

}  // namespace xsa::train
