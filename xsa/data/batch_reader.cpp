#include "xsa/data/batch_reader.h"

#include <algorithm>

namespace xsa::data {

BatchReader::BatchReader(TrainLoader loader, std::int64_t depth)
    : state_(loader.state()),
      batches_(
          [loader]() mutable {
            const auto tokens = static_cast<std::size_t>(loader.batch_tokens());
            Batch batch{std::vector<std::int64_t>(tokens), std::vector<std::int64_t>(tokens), {}};
            loader.next(batch.inputs, batch.targets);
            batch.state = loader.state();
            return batch;
          },
          depth) {}

void BatchReader::next(std::span<std::int64_t> inputs, std::span<std::int64_t> targets) {
  Batch batch = batches_.next();
  check(inputs.size() == batch.inputs.size() && targets.size() == batch.targets.size(),
        "batch reader: expected room for ", batch.inputs.size(), " tokens, got ", inputs.size(),
        " inputs and ", targets.size(), " targets");
  std::copy(batch.inputs.begin(), batch.inputs.end(), inputs.begin());
  std::copy(batch.targets.begin(), batch.targets.end(), targets.begin());
  state_ = std::move(batch.state);
}

}  // namespace xsa::data
