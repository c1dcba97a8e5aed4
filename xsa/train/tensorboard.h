// TensorBoard's event files: what metrics.jsonl says, once more, for those who watch there. A file
// is a row of TFRecords, each of which holds one tensorflow.Event; the few fields that scalars need
// are written by hand (docs/training.md says which tags there are).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "xsa/base/json.h"
#include "xsa/train/append_file.h"

namespace xsa::train {

/// Its name in a run folder: TensorBoard knows its files by "tfevents".
inline constexpr const char* kEventFile = "events.out.tfevents.xsa";

/// Castagnoli's CRC.
std::uint32_t crc32c(std::string_view bytes);
/// Length, its checksum, the data, theirs.
std::string tf_record(std::string_view data);

struct Scalar {
  std::string tag;
  double value;
};
/// The figures of a line of metrics.jsonl: "train/loss", "validation/bits_per_byte",
/// "eval/piqa/acc", "diagnose/value_cosine/layer_0". What is null has none.
std::vector<Scalar> scalars_of(const Json& line);

class EventFile {
 public:
  /// Keeps the first `offset` bytes, as metrics.jsonl does; begins anew where the file is shorter.
  EventFile(const std::filesystem::path& path, std::int64_t offset);
  /// One event with the line's scalars, at its step and the present time.
  void append(const Json& line);
  std::int64_t sync() { return file_.sync(); }

 private:
  AppendFile file_;
};

}  // namespace xsa::train
