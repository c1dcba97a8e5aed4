// metrics.jsonl: appended line by line, each line in the file when append returns.
#pragma once

#include <cstdint>
#include <filesystem>

#include "xsa/base/json.h"

namespace xsa::train {

class MetricsFile {
 public:
  /// Keeps the first `offset` bytes and drops what was written after them: by steps that a resumed
  /// run takes again. Throws Error if the file is shorter.
  MetricsFile(const std::filesystem::path& path, std::int64_t offset);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void append(const Json& line);
  /// Flushes to the disk and returns the file's size in bytes.
  std::int64_t sync();

 private:
  [[noreturn]] void fail(const char* action) const;

  std::filesystem::path path_;
  std::int64_t offset_;
  int fd_;
};

}  // namespace xsa::train
