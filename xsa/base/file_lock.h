// A file or folder that one process at a time holds; a killed one's lock is gone with it.
#pragma once

#include <filesystem>
#include <string_view>

namespace xsa {

class FileLock {
 public:
  /// Takes `path`, a folder or a file that is made where there is none, unless another process
  /// holds it. Throws Error where that cannot be told.
  explicit FileLock(const std::filesystem::path& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool held() const { return held_; }
  /// Replaces the content of the file that is held: for whoever finds it held.
  void note(std::string_view text) const;

 private:
  int fd_;
  bool held_ = false;
};

}  // namespace xsa
