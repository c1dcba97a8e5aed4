#include "xsa/cli/brief_waits.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace xsa::cli {
namespace {

constexpr std::size_t kMostVariables = 4096;

bool is_named(const char* variable, const char* name) {
  const std::size_t size = std::strlen(name);
  return std::strncmp(variable, name, size) == 0 && variable[size] == '=';
}

/// Runs before the libraries' own initializers, libgomp's among them, and before the C library has
/// an environment to change: another one needs another execve. It costs a millisecond or two.
/// Where it fails, the program goes on with libgomp's own setting.
void start_anew(int, char** words, char** environment) {
  static char* variables[kMostVariables + 2];
  std::size_t count = 0;
  for (; environment[count] != nullptr; ++count) {
    if (count == kMostVariables || is_named(environment[count], "GOMP_SPINCOUNT") ||
        is_named(environment[count], "OMP_WAIT_POLICY"))
      return;
    variables[count] = environment[count];
  }
  static char brief_waits[sizeof kBriefWaits];
  std::memcpy(brief_waits, kBriefWaits, sizeof kBriefWaits);
  variables[count] = brief_waits;
  ::execve("/proc/self/exe", words, variables);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const kFirst)(int, char**,
                                                                   char**) = start_anew;

}  // namespace

void wait_briefly(const char* name) { ::prctl(PR_SET_NAME, name); }

}  // namespace xsa::cli
