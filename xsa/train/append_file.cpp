#include "xsa/train/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "xsa/base/error.h"

namespace xsa::train {

AppendFile::AppendFile(const std::filesystem::path& path, std::int64_t offset)
    : path_(path),
      offset_(offset),
      fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (fd_ < 0) fail("open");
  struct stat status {};
  if (::fstat(fd_, &status) != 0) fail("inspect");
  check(status.st_size >= offset, path_.string(), ": expected at least ", offset,
        " bytes, as the checkpoint says, got ", status.st_size,
        "; bring the file back, or begin anew with --overwrite");
  if (::ftruncate(fd_, offset) != 0) fail("truncate");
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

void AppendFile::append(std::string_view text) {
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t count = ::write(fd_, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write");
    written += static_cast<std::size_t>(count);
  }
  offset_ += static_cast<std::int64_t>(text.size());
}

std::int64_t AppendFile::sync() {
  if (::fsync(fd_) != 0) fail("sync");
  return offset_;
}

void AppendFile::fail(const char* action) const {
  throw Error(cat(path_.string(), ": cannot ", action, ": ", std::strerror(errno)));
}

}  // namespace xsa::train
