#include "xsa/base/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "xsa/base/error.h"
#include "xsa/base/signals.h"

namespace xsa {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, std::string_view action) {
  throw Error(
      cat(path.empty() ? "''" : path.string(), ": cannot ", action, ": ", std::strerror(errno)));
}

/// Does not wait for a pipe's writer: that is InputFile's to do, or, for what must be a regular
/// file, nobody's.
constexpr int kReading = O_RDONLY | O_NONBLOCK | O_CLOEXEC;

constexpr int kStopCheckMs = 200;

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  /// Early, for what only closing tells. Whether it went well.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

}  // namespace

InputFile::InputFile() : name_("standard input"), fd_(STDIN_FILENO) {
  struct stat status {};
  if (::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode)) size_ = status.st_size;
}

InputFile::InputFile(const fs::path& path)
    : name_(path.string()), fd_(::open(path.c_str(), kReading)) {
  if (fd_ < 0) fail(path, "open");
  struct stat status {};
  if (::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode)) size_ = status.st_size;
}

InputFile InputFile::open(const fs::path& path) {
  return path == kStandardInput ? standard_input() : InputFile(path);
}

InputFile::~InputFile() {
  if (fd_ >= 0 && fd_ != STDIN_FILENO) ::close(fd_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : name_(std::move(other.name_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

bool InputFile::wait(int milliseconds) const {
  if (size_) return true;
  pollfd wanted{fd_, POLLIN, 0};
  const int ready = ::poll(&wanted, 1, milliseconds);
  if (const int signal = stop_signal())
    throw Interrupted(signal, cat("stopped while reading ", name_));
  return ready > 0;
}

std::size_t InputFile::read(std::span<char> out) {
  for (;;) {
    if (!wait(kStopCheckMs)) continue;
    const ssize_t count = ::read(fd_, out.data(), out.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) fail(name_, "read");
    // A producer that was stopped together with us has ended the input: that is not its end.
    if (count == 0) wait(0);
    return static_cast<std::size_t>(count);
  }
}

bool InputFile::is_at_end() const {
  if (size_) return ::lseek(fd_, 0, SEEK_CUR) >= *size_;
  while (!wait(kStopCheckMs)) continue;
  int bytes = 0;
  return ::ioctl(fd_, FIONREAD, &bytes) == 0 && bytes == 0;
}

std::string InputFile::read_all() {
  std::string content;
  char buffer[1 << 16];
  while (const std::size_t count = read(buffer)) content.append(buffer, count);
  return content;
}

std::string read_file(const fs::path& path) { return InputFile(path).read_all(); }

void sync_path(const fs::path& path) {
  const Descriptor file(path, kReading);
  if (!file.valid()) fail(path, "open");
  if (::fsync(file.get()) != 0) fail(path, "sync");
}

namespace {

void write_all(const Descriptor& file, const fs::path& path, std::string_view content) {
  for (std::size_t written = 0; written < content.size();) {
    const ssize_t count = ::write(file.get(), content.data() + written, content.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, "write");
    written += static_cast<std::size_t>(count);
  }
}

/// What a chain of symbolic links ends at, whether or not it exists: the file to replace.
fs::path behind_links(const fs::path& path) {
  constexpr int kMaxLinks = 40;  // the kernel's own limit
  fs::path target = path;
  std::error_code error;
  for (int i = 0; fs::is_symlink(fs::symlink_status(target, error)); ++i) {
    check(i < kMaxLinks, path.string(), ": cannot follow: a loop of symbolic links");
    const fs::path next = fs::read_symlink(target, error);
    check(!error, target.string(), ": cannot read link: ", error.message());
    target = target.parent_path() / next;
  }
  return target;
}

/// Where a file's content goes.
struct Place {
  fs::path target, parent, aside;
  bool is_device = false;  // or a pipe, which is written as it is

  /// Creates the parent folders.
  explicit Place(const fs::path& path)
      : target(behind_links(path)),
        parent(target.has_parent_path() ? target.parent_path() : fs::path(".")),
        aside(target.string() + kPartialEnd) {
    std::error_code error;
    const fs::file_status status = fs::status(target, error);
    check(!fs::is_directory(status), path.string(), ": expected a file, got a folder");
    is_device = fs::exists(status) && !fs::is_regular_file(status);
    if (is_device) return;
    fs::create_directories(parent, error);
    check(!error, parent.string(), ": cannot create folder: ", error.message());
  }
};

}  // namespace

void check_writable(const fs::path& path) {
  const Place place(path);
  if (place.is_device) return;
  // Not `aside`, which another process may be writing.
  const fs::path trial = place.target.string() + ".checked";
  const Descriptor file(trial, O_WRONLY | O_CREAT);
  if (!file.valid()) fail(trial, "create");
  ::unlink(trial.c_str());
}

void atomic_write(const fs::path& path, std::string_view content) {
  const auto [target, parent, aside, is_device] = Place(path);
  if (is_device) {
    Descriptor file(target, O_WRONLY);
    if (!file.valid()) fail(path, "open");
    write_all(file, path, content);
    if (!file.close()) fail(path, "write");
    return;
  }
  const Descriptor file(aside, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.valid()) fail(aside, "create");
  try {
    write_all(file, aside, content);
    if (::fsync(file.get()) != 0) fail(aside, "sync");
    if (::rename(aside.c_str(), target.c_str()) != 0) fail(path, "replace");
  } catch (const Error&) {
    ::unlink(aside.c_str());  // it may fill the disk
    throw;
  }
  sync_path(parent);
}

MappedFile::MappedFile(const fs::path& path) {
  const Descriptor file(path, kReading);
  if (!file.valid()) fail(path, "open");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(path, "inspect");
  check(S_ISREG(status.st_mode), path.string(), ": expected a regular file");
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) fail(path, "map");
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

namespace {

/// Many systems begin with room for 1024 open files and allow more on request. Whether there is
/// more now.
bool make_room_for_files() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

}  // namespace

RandomAccessFile::RandomAccessFile(const fs::path& path)
    : path_(path), fd_(::open(path.c_str(), kReading)) {
  if (fd_ < 0 && errno == EMFILE && make_room_for_files()) fd_ = ::open(path.c_str(), kReading);
  if (fd_ < 0) fail(path, "open");
  struct stat status {};
  const bool known = ::fstat(fd_, &status) == 0;
  size_ = status.st_size;
  if (known && S_ISREG(status.st_mode)) return;
  const int reason = errno;
  ::close(fd_);
  errno = reason;
  if (!known) fail(path, "inspect");
  throw Error(cat(path.string(), ": expected a regular file"));
}

RandomAccessFile::~RandomAccessFile() {
  if (fd_ >= 0) ::close(fd_);
}

RandomAccessFile::RandomAccessFile(RandomAccessFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

RandomAccessFile& RandomAccessFile::operator=(RandomAccessFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

void RandomAccessFile::read(std::int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = ::pread(fd_, out.data(), out.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path_, cat("read at byte ", offset));
    check(count > 0, path_.string(), ": expected ", out.size(), " bytes at ", offset,
          ", got the file's end: it was cut short meanwhile");
    out = out.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
}

FileState RandomAccessFile::state() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) fail(path_, "inspect");
  const auto ns = [](const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; };
  return {status.st_size, ns(status.st_mtim), ns(status.st_ctim), status.st_ino};
}

void RandomAccessFile::will_need(std::int64_t offset, std::int64_t bytes) const {
  ::posix_fadvise(fd_, offset, bytes, POSIX_FADV_WILLNEED);  // advice: a refusal changes nothing
}

}  // namespace xsa
