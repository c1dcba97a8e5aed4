#include "xsa/train/conditions.h"

#include "xsa/base/conditions.h"
#include "xsa/data/loader.h"

namespace xsa::train {

Json settings(const RunConfig& config) {
  Json values = Json::object();
  add_conditions(values, config.model, "model");
  add_conditions(values, config.data, "data");
  add_conditions(values, config.train, "train");
  return values;
}

Json conditions(const RunConfig& config, const data::Dataset& dataset, const Json& measured) {
  const TrainConfig& train = config.train;
  const std::int64_t context = config.model.context;
  data::TrainLoader(dataset.train.tokens, train.batch_size, context,
                    static_cast<std::uint64_t>(train.seed));  // throws if no batch fits
  const data::SequentialLoader validation(dataset.validation.tokens, train.batch_size, context,
                                          train.eval_rows);
  Json values = settings(config);
  values["train.eval_rows"] = validation.rows();
  values["data_sha256"] = dataset.sha256();
  values["arithmetic"] = "float32";  // of weights, products and sums: all that models train in
  if (!train.from.empty()) values[kOrigin] = train.from;
  values.update(measured);
  return values;
}

void settle_origin(Json& wanted, const Json& recorded) {
  if (wanted.contains(kOrigin) && recorded.is_object() && recorded.contains(kOrigin))
    wanted[kOrigin] = recorded[kOrigin];
}

}  // namespace xsa::train
