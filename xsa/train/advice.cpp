#include "xsa/train/advice.h"

#include "xsa/base/error.h"

namespace xsa::train {

std::string how_to_continue(const TrainOptions& options) {
  if (!options.how_to_continue.empty()) return options.how_to_continue;
  if (options.resume) return "The same command continues it";
  return cat("The same command with --resume", options.overwrite ? " in place of --overwrite" : "",
             " continues it");
}

std::string how_to_stay_finite(const TrainConfig& config) {
  return cat("Lower --train.lr (", config.lr, "), lengthen --train.warmup_steps (",
             config.warmup_steps, ") or clip more with --train.grad_clip (", config.grad_clip,
             "): this is another training, which begins anew with --overwrite, not with --resume, ",
             "or under another --name");
}

}  // namespace xsa::train
