#include "xsa/checkpoint/hashed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "xsa/base/error.h"

namespace xsa::checkpoint {
namespace {

constexpr std::size_t kPiece = 1 << 20;  // hashed while it is still in the cache

void check_system(bool holds, const std::filesystem::path& path, const char* action) {
  if (!holds) throw Error(cat(path.string(), ": cannot ", action, ": ", std::strerror(errno)));
}

}  // namespace

HashedFile::HashedFile(const std::filesystem::path& path)
    : path_(path),
      descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  check_system(descriptor_ >= 0, path_, "create");
}

HashedFile::~HashedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void HashedFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kPiece));
    if (count < 0 && errno == EINTR) continue;
    check_system(count > 0, path_, "write");
    const auto written = static_cast<std::size_t>(count);
    hash_.add(bytes.first(written));
    bytes_ += count;
    bytes = bytes.subspan(written);
  }
}

HashedFile::Written HashedFile::finish() {
  check_system(::fsync(descriptor_) == 0, path_, "sync");
  const int descriptor = descriptor_;
  descriptor_ = -1;
  check_system(::close(descriptor) == 0, path_, "close");
  return {bytes_, hash_.hex()};
}

}  // namespace xsa::checkpoint
