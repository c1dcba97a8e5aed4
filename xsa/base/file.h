// Files that survive a kill: written aside, synced, renamed. Every error names the path and the
// system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace xsa {

/// A file, pipe or device that is read as it comes. Waiting for what a pipe brings, also for its
/// first writer, ends when asked to stop.
class InputFile {
 public:
  /// Names standard input where a path is expected.
  static constexpr std::string_view kStandardInput = "-";

  /// Throws Error if it cannot be opened.
  explicit InputFile(const std::filesystem::path& path);
  static InputFile standard_input() { return InputFile(); }
  /// Standard input where `path` is kStandardInput.
  static InputFile open(const std::filesystem::path& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// For messages: the path, or "standard input".
  const std::string& name() const { return name_; }
  /// In bytes, of a regular file as it was when opened; nothing for others.
  std::optional<std::int64_t> size() const { return size_; }
  /// At least a byte of what is there; 0 at the end. Throws Error if it cannot be read;
  /// Interrupted when asked to stop, unless it is a regular file.
  std::size_t read(std::span<char> out);
  /// Whether read has something to give, or the end, without waiting.
  bool is_ready() const { return wait(0); }
  /// Whether nothing is left of it; waits, as read does, for what a pipe brings. Of a device nobody
  /// knows: false.
  bool is_at_end() const;
  /// What is left of it.
  std::string read_all();

 private:
  InputFile();
  bool wait(int milliseconds) const;

  std::string name_;
  int fd_;
  std::optional<std::int64_t> size_;
};

/// The whole file. Throws as InputFile.
std::string read_file(const std::filesystem::path& path);

/// What ends the name of a file that is being written; a killed process leaves it.
inline constexpr const char* kPartialEnd = ".partial";

/// Replaces path by `content` in one step: a reader sees the old file or the new one, also after a
/// power cut. Creates missing parent folders. A symbolic link is followed, not replaced; a device
/// or a named pipe is written as it is. Where it fails, as on a full disk, it leaves nothing
/// behind.
void atomic_write(const std::filesystem::path& path, std::string_view content);

/// Whether atomic_write would find its place: creates missing parent folders, and leaves what is
/// there as it is. Throws as atomic_write.
void check_writable(const std::filesystem::path& path);

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

/// What tells whether a file is what it was: whatever writes to it changes one of these.
struct FileState {
  std::int64_t bytes = 0, modified_ns = 0;
  std::int64_t changed_ns = 0;  // of the file's record too, which no program sets at will
  std::uint64_t inode = 0;
  bool operator==(const FileState&) const = default;
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
  /// As it is now.
  FileState state() const;
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
