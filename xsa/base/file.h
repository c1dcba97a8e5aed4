// Files that survive a kill: written aside, synced, renamed. Every error names the path and the
// system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace xsa {

/// The whole file. Throws Error if it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// Replaces path by `content` in one step: a reader sees the old file or the new one, also after a
/// power cut. Creates missing parent folders. A symbolic link is followed, not replaced; a device
/// or a named pipe is written as it is.
void atomic_write(const std::filesystem::path& path, std::string_view content);

/// Flushes a file's or a folder's data and names to the disk.
void sync_path(const std::filesystem::path& path);

/// A read-only view of a file's bytes (mmap); an empty file is an empty span.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A file that is read in pieces, at any place and by any thread. Other than a mapped file's, a
/// fault of the disk, or a file cut short meanwhile, is an Error and not the process's end.
class RandomAccessFile {
 public:
  explicit RandomAccessFile(const std::filesystem::path& path);
  ~RandomAccessFile();
  RandomAccessFile(RandomAccessFile&& other) noexcept;
  RandomAccessFile& operator=(RandomAccessFile&& other) noexcept;
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// In bytes, as it was when opened.
  std::int64_t size() const { return size_; }
  /// Fills `out` from `offset` on. Throws Error where the file ends before.
  void read(std::int64_t offset, std::span<std::byte> out) const;
  /// Lets the system fetch these bytes meanwhile, so that many reads wait for the disk at once.
  void will_need(std::int64_t offset, std::int64_t bytes) const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace xsa
