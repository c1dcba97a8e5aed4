#include "xsa/cli/brief_waits.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <ctime>

namespace xsa::cli {
namespace {

constexpr char kSetting[] = "GOMP_SPINCOUNT=";
constexpr std::size_t kMostVariables = 4096;

bool is_named(const char* variable, const char* name) {
  const std::size_t size = std::strlen(name);
  return std::strncmp(variable, name, size) == 0 && variable[size] == '=';
}

/// A turn as libgomp's.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("" ::: "memory");
#endif
}

long nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000L + now.tv_nsec;
}

/// Turns that take kBriefWaitNanoseconds: processors differ by a factor of 30. The quickest of some
/// samples counts, since others may have the core meanwhile.
long turns() {
  constexpr long kTurns = 100;
  volatile int never = 0;
  long quickest = kBriefWaitNanoseconds;
  for (int sample = 0; sample < 8; ++sample) {
    const long start = nanoseconds();
    for (long turn = 0; turn < kTurns && never == 0; ++turn) relax();
    quickest = std::min(quickest, nanoseconds() - start);
  }
  return kBriefWaitNanoseconds * kTurns / std::max(quickest, 1L);
}

/// Runs before the libraries' own initializers, libgomp's among them, and before the C library has
/// an environment to change: another environment needs another execve, which costs some
/// milliseconds. Where it fails, the program goes on with libgomp's own setting.
void start_anew(int, char** words, char** environment) {
  static char* variables[kMostVariables + 2];
  std::size_t count = 0;
  for (; environment[count] != nullptr; ++count) {
    if (count == kMostVariables || is_named(environment[count], "GOMP_SPINCOUNT") ||
        is_named(environment[count], "OMP_WAIT_POLICY"))
      return;
    variables[count] = environment[count];
  }
  static char setting[sizeof kSetting + 20];
  char* end = setting + sizeof setting - 1;
  for (long left = turns(); left > 0; left /= 10) *--end = static_cast<char>('0' + left % 10);
  end -= sizeof kSetting - 1;
  std::memcpy(end, kSetting, sizeof kSetting - 1);
  variables[count] = end;
  ::execve("/proc/self/exe", words, variables);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const kFirst)(int, char**,
                                                                   char**) = start_anew;

}  // namespace

void wait_briefly(const char* name) { ::prctl(PR_SET_NAME, name); }

}  // namespace xsa::cli
