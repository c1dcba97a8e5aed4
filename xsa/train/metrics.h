// metrics.jsonl: appended line by line, each line in the file when append returns.
#pragma once

#include "xsa/base/json.h"
#include "xsa/train/append_file.h"

namespace xsa::train {

class MetricsFile {
 public:
  /// `offset` as AppendFile's.
  MetricsFile(const std::filesystem::path& path, std::int64_t offset) : file_(path, offset) {}
  void append(const Json& line) { file_.append(line.dump() + "\n"); }
  std::int64_t sync() { return file_.sync(); }

 private:
  AppendFile file_;
};

}  // namespace xsa::train
