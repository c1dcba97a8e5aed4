#include "xsa/base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace xsa {

void hold_standard_streams() {
  // The lowest free descriptor is taken; the wrong direction makes its use an error.
  for (const auto& [stream, direction] :
       {std::pair(STDIN_FILENO, O_WRONLY), std::pair(STDOUT_FILENO, O_RDONLY),
        std::pair(STDERR_FILENO, O_RDONLY)})
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", direction);
}

}  // namespace xsa
