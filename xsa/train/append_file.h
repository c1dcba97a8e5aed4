// A file that grows at its end, and of which a resumed run takes back what came after its
// checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace xsa::train {

class AppendFile {
 public:
  /// Keeps the first `offset` bytes and drops what was written after them: by steps that a resumed
  /// run takes again. Throws Error if the file is shorter.
  AppendFile(const std::filesystem::path& path, std::int64_t offset);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// In the file when this returns.
  void append(std::string_view bytes);
  /// Flushes to the disk and returns the file's size in bytes.
  std::int64_t sync();

 private:
  [[noreturn]] void fail(const char* action) const;

  std::filesystem::path path_;
  std::int64_t offset_;
  int fd_;
};

}  // namespace xsa::train
