// libFuzzer: any file opens as a shard, or throws Error.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "xsa/base/error.h"
#include "xsa/base/file.h"
#include "xsa/data/shard.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = ::memfd_create("shard", MFD_CLOEXEC);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  try {
    std::int64_t sum = 0;
    const std::string path = xsa::cat("/proc/self/fd/", file);
    const xsa::data::Shard shard(path);
    // A file of this moment would wait for the clock before it is hashed.
    shard.recall(xsa::RandomAccessFile(path).state(), "known");
    std::vector<std::uint16_t> tokens(static_cast<std::size_t>(shard.size()));
    shard.read(0, tokens);
    for (const std::uint16_t token : tokens) sum += token;
    return sum < 0 ? -1 : 0;
  } catch (const xsa::Error&) {
    return 0;
  }
}
