#include "xsa/train/summary.h"

#include "xsa/base/system.h"
#include "xsa/model/gpt.h"

namespace xsa::train {

std::int64_t step_tokens(const RunConfig& config) {
  return config.train.batch_size * config.train.accumulation * config.model.context;
}

Json summary(const RunConfig& config, const Standing& at_end, double tokens_per_s) {
  const model::ModelCount count = model::count(config.model);
  Json json = {{"attention", config.model.attention},
               {"seed", config.train.seed},
               {"steps", at_end.step},
               {"tokens", at_end.step * step_tokens(config)},
               {"data_sha256", at_end.data_sha256},
               {"data_location", at_end.data_location},
               {"parameters", count.parameters},
               {"non_embedding_parameters", count.non_embedding_parameters},
               {"forward_flops_per_token", count.forward_flops_per_token},
               {"train_loss", at_end.train_loss},
               {"validation_loss", at_end.validation_loss},
               {"bits_per_byte", at_end.bits_per_byte},
               {"validation_rows", at_end.validation_rows},
               {"best_validation_loss", at_end.best_validation_loss},
               {"best_step", at_end.best_step},
               {"tokens_per_s", tokens_per_s},
               {"data_wait_s", at_end.data_wait_s},
               {"elapsed_s", at_end.elapsed_s},
               {"peak_tensor_bytes", at_end.peak_tensor_bytes},
               {"peak_rss_bytes", peak_rss_bytes()},
               {"threads", at_end.threads},
               {"machine", machine_info()},
               {"date", utc_now()},
               {"commit", build_commit()}};
  if (!at_end.origin_path.empty())
    json["origin"] = {{"path", at_end.origin_path},
                      {"step", at_end.origin_step},
                      {"weights_sha256", at_end.origin_sha256}};
  return json;
}

}  // namespace xsa::train
