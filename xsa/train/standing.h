// Where a run stands, apart from weights, optimizer and data position: what state.json keeps of it.
#pragma once

#include <cstdint>
#include <string>

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
  double elapsed_s = 0;
  std::int64_t peak_tensor_bytes = 0;
  std::int64_t threads = 0;
  std::int64_t metrics_offset = 0;
  std::int64_t events_offset = 0;
  std::string data_sha256;

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
    field("elapsed_s", self.elapsed_s, "wall time of the run so far");
    field("peak_tensor_bytes", self.peak_tensor_bytes, "most bytes in tensors so far");
    field("threads", self.threads, "CPU threads of the last process");
    field("metrics_offset", self.metrics_offset, "bytes of metrics.jsonl at this step");
    field("events_offset", self.events_offset, "bytes of TensorBoard's event file at this step");
    field("data_sha256", self.data_sha256, "of the tokens trained and validated on");
  }
};

}  // namespace xsa::train
