// The loss on held-out text, without gradients.
#pragma once

#include <cstdint>
#include <optional>

#include "xsa/data/dataset.h"
#include "xsa/model/gpt.h"
#include "xsa/train/config.h"

namespace xsa::train {

struct Validation {
  std::int64_t rows;
  double loss;           // nats a token, mean over all targets
  double bits_per_byte;  // loss / ln 2 * tokens / bytes of the split
};

/// Over config.eval_rows rows of the split (data::SequentialLoader). Nothing if a signal to stop
/// came meanwhile.
std::optional<Validation> validate(const model::Gpt& model, const data::Split& split,
                                   const TrainConfig& config);

}  // namespace xsa::train
