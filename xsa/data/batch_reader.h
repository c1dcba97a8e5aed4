// A TrainLoader read ahead, so that training does not wait for the disk.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xsa/data/loader.h"
#include "xsa/data/read_ahead.h"

namespace xsa::data {

class BatchReader {
 public:
  /// Begins where `loader` stands, whose stream must outlive the reader; up to `depth` batches are
  /// read before they are asked for (0: none, on the caller's thread). The batches are the
  /// loader's, whatever the depth.
  BatchReader(TrainLoader loader, std::int64_t depth);

  /// As TrainLoader::next. What was wrong with a file is thrown where its batch is due.
  void next(std::span<std::int64_t> inputs, std::span<std::int64_t> targets);
  /// As TrainLoader::state, after the batches that next() gave, not those that wait.
  const Json& state() const { return state_; }
  /// How long next() has kept its callers, in seconds, so far.
  double waited_s() const { return batches_.waited_s(); }

 private:
  struct Batch {
    std::vector<std::int64_t> inputs, targets;
    Json state;
  };

  Json state_;
  ReadAhead<Batch> batches_;
};

}  // namespace xsa::data
