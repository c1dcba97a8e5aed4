// Where a run stands, apart from weights, optimizer and data position: what state.json keeps of it.
#pragma once

#include <cstdint>
#include <string>

#include "xsa/base/json.h"
#include "xsa/data/recorded.h"

namespace xsa::train {

struct Standing {
  std::int64_t step = 0;
  std::int64_t validated_step = 0;
  std::int64_t evaluated_step = 0;
  std::int64_t diagnosed_step = 0;
  double loss_sum = 0;
  std::int64_t loss_steps = 0;
  double line_seconds = 0;
  double line_wait_s = 0;
  double data_wait_s = 0;
  double train_loss = 0;
  double validation_loss = 0;
  double bits_per_byte = 0;
  std::int64_t validation_rows = 0;
  std::int64_t best_step = 0;
  double best_validation_loss = 0;
  double elapsed_s = 0;
  std::int64_t peak_tensor_bytes = 0;
  std::int64_t threads = 0;
  std::int64_t metrics_offset = 0;
  std::int64_t events_offset = 0;
  std::string data_sha256, data_location, data_cache;
  std::string origin_path, origin_sha256;
  std::int64_t origin_step = 0;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& field) {
    field("step", self.step, "finished optimizer steps");
    field("validated_step", self.validated_step, "the last step with a validation");
    field("evaluated_step", self.evaluated_step, "the last step with an evaluation");
    field("diagnosed_step", self.diagnosed_step, "the last step with a diagnosis");
    field("loss_sum", self.loss_sum, "of the steps since the last train line");
    field("loss_steps", self.loss_steps, "how many those are");
    field("line_seconds", self.line_seconds, "what those took");
    field("line_wait_s", self.line_wait_s, "of that, waiting for data");
    field("data_wait_s", self.data_wait_s, "waiting for data, up to the last train line");
    field("train_loss", self.train_loss, "of the last train line");
    field("validation_loss", self.validation_loss, "of the last validation");
    field("bits_per_byte", self.bits_per_byte, "of the last validation");
    field("validation_rows", self.validation_rows, "of the last validation");
    field("best_step", self.best_step, "the step of the lowest validation loss; 0: none yet");
    field("best_validation_loss", self.best_validation_loss, "at that step");
    field("elapsed_s", self.elapsed_s, "wall time of the run so far");
    field("peak_tensor_bytes", self.peak_tensor_bytes, "most bytes in tensors so far");
    field("threads", self.threads, "CPU threads of the last process");
    field("metrics_offset", self.metrics_offset, "bytes of metrics.jsonl at this step");
    field("events_offset", self.events_offset, "bytes of TensorBoard's event file at this step");
    field("data_sha256", self.data_sha256, "of the tokens trained and validated on");
    field("data_location", self.data_location, "where those lay: an absolute path");
    field("data_cache", self.data_cache, "the folder of their shards: an absolute path");
    field("origin_path", self.origin_path,
          "where the first weights came from; empty: from nowhere");
    field("origin_sha256", self.origin_sha256, "of those weights");
    field("origin_step", self.origin_step, "the step of the run they came from");
  }
};

/// What the state of a checkpoint tells of its run's data; empty where that is older than this.
inline data::DataRecord data_record_of(const Json& state) {
  const auto found = state.find("run");
  const auto text = [&](const char* key) {
    const bool there = found != state.end() && found->is_object() && found->contains(key);
    return there && found->at(key).is_string() ? found->at(key).get<std::string>() : "";
  };
  return {text("data_location"), text("data_cache"), text("data_sha256")};
}

}  // namespace xsa::train
