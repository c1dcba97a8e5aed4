#include "xsa/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "xsa/base/error.h"

namespace xsa {

FileLock::FileLock(const std::filesystem::path& path)
    : fd_(::open(path.c_str(),
                 (std::filesystem::is_directory(path) ? O_RDONLY : O_RDWR | O_CREAT) | O_CLOEXEC,
                 0644)) {
  check(fd_ >= 0, path.string(), ": cannot open: ", std::strerror(errno));
  held_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
  const int reason = errno;
  if (held_ || reason == EWOULDBLOCK) return;
  ::close(fd_);
  throw Error(cat(path.string(), ": cannot lock: ", std::strerror(reason)));
}

void FileLock::note(std::string_view text) const {
  // Nobody depends on it: a full disk, or a folder that is locked itself, leaves no note.
  if (::ftruncate(fd_, 0) != 0) return;
  [[maybe_unused]] const auto written = ::pwrite(fd_, text.data(), text.size(), 0);
}

FileLock::~FileLock() { ::close(fd_); }

}  // namespace xsa
