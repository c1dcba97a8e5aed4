#include "xsa/train/validation.h"

#include <ATen/core/grad_mode.h>

#include <numbers>

#include "xsa/base/signals.h"
#include "xsa/data/loader.h"
#include "xsa/train/batch.h"

namespace xsa::train {

std::optional<Validation> validate(const model::Gpt& model, const data::Split& split,
                                   const TrainConfig& config) {
  const at::NoGradGuard no_grad;
  const std::int64_t context = model.config().context;
  data::SequentialLoader loader(split.tokens, config.batch_size, context, config.eval_rows);
  Batch batch(config.batch_size, context);
  double loss_sum = 0;
  while (const std::int64_t rows = loader.next(batch.input_span(), batch.target_span())) {
    if (stop_signal() != 0) return std::nullopt;
    loss_sum += model
                    .loss_sum(batch.inputs.narrow(0, 0, rows), batch.targets.narrow(0, 0, rows),
                              config.loss_chunk, batch.documents(rows, split.document_opener))
                    .item<double>();
  }
  const double loss = loss_sum / static_cast<double>(loader.rows() * context);
  const double tokens_per_byte =
      static_cast<double>(split.tokens.size()) / static_cast<double>(split.bytes);
  return Validation{loader.rows(), loss, loss / std::numbers::ln2 * tokens_per_byte};
}

}  // namespace xsa::train
