#include "xsa/base/system.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "xsa/base/commit.h"
#include "xsa/base/error.h"
#include "xsa/base/parallel.h"

namespace xsa {
namespace {

namespace fs = std::filesystem;

/// The value after `key` in a file of "key: value" or "key=value" lines, e.g. /proc/cpuinfo; "" if
/// there is none.
std::string value_of(const fs::path& file, std::string_view key, char separator) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find(separator);
    if (end == std::string::npos) continue;
    std::string_view name(line.data(), end), value(line);
    while (!name.empty() && std::isspace(static_cast<unsigned char>(name.back())))
      name.remove_suffix(1);
    if (name != key) continue;
    value.remove_prefix(end + 1);
    const auto edge = [](char c) { return c == ' ' || c == '\t' || c == '"'; };
    while (!value.empty() && edge(value.front())) value.remove_prefix(1);
    while (!value.empty() && edge(value.back())) value.remove_suffix(1);
    return std::string(value);
  }
  return "";
}

std::string first_of(std::initializer_list<std::string> values) {
  for (const std::string& value : values)
    if (!value.empty()) return value;
  return "unknown";
}

/// By affinity; the kernel wants room for every core that the machine could have.
std::int64_t cores_by_affinity() {
  for (std::size_t cores = CPU_SETSIZE; cores <= std::size_t{1} << 20; cores *= 2) {
    std::vector<cpu_set_t> sets(cores / CPU_SETSIZE);
    if (::sched_getaffinity(0, sets.size() * sizeof sets[0], sets.data()) == 0)
      return CPU_COUNT_S(sets.size() * sizeof sets[0], sets.data());
    if (errno != EINVAL) break;
  }
  return std::max(1U, std::thread::hardware_concurrency());
}

/// A whole number of at least 1 that the environment gives, or the first of several with commas
/// between them, as OpenMP reads it; nothing for what OpenMP would not take.
std::optional<std::int64_t> threads_in_environment(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long threads = std::strtoll(text, &end, 10);
  while (*end == ' ' || *end == '\t') ++end;
  if (end == text || errno != 0 || threads < 1 || (*end != '\0' && *end != ','))
    return std::nullopt;
  check_usage(threads <= kMostThreads, name, ": expected at most ", kMostThreads, ", got ",
              threads);
  return threads;
}

std::int64_t allowed_memory() {
  const auto physical =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return static_cast<std::int64_t>(
      std::min(physical, control_group_limits().memory_bytes.value_or(physical)));
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

/// Those that decide which kernels run.
Json instruction_sets() {
  const std::set<std::string> interesting = {
      "sse4_2",   "avx",         "avx2",     "fma",   "avx512f", "avx512bw", "avx512dq",
      "avx512vl", "avx512_bf16", "amx_bf16", "asimd", "sve",     "sve2",     "bf16"};
  std::istringstream flags(first_of(
      {value_of("/proc/cpuinfo", "flags", ':'), value_of("/proc/cpuinfo", "Features", ':')}));
  Json found = Json::array();
  for (std::string flag; flags >> flag;)
    if (interesting.contains(flag)) found.push_back(flag);
  return found;
}

}  // namespace

std::int64_t allowed_cores(const ControlGroupLimits& limits) {
  const std::int64_t cores = cores_by_affinity();
  if (!limits.cores || *limits.cores >= static_cast<double>(cores)) return cores;
  return static_cast<std::int64_t>(std::max(1.0, std::ceil(*limits.cores)));
}

std::int64_t default_threads() {
  const std::int64_t wanted = threads_in_environment("OMP_NUM_THREADS").value_or(allowed_cores());
  return std::min(wanted, threads_in_environment("OMP_THREAD_LIMIT").value_or(wanted));
}

std::int64_t threads_or_default(std::int64_t wanted) {
  return wanted > 0 ? wanted : default_threads();
}

Json machine_info() {
  return {{"cpu", first_of({value_of("/proc/cpuinfo", "model name", ':'),
                            value_of("/proc/cpuinfo", "CPU part", ':')})},
          {"cores", allowed_cores()},
          {"memory_bytes", allowed_memory()},
          {"os", first_of({value_of("/etc/os-release", "PRETTY_NAME", '='),
                           value_of("/usr/lib/os-release", "PRETTY_NAME", '=')})},
          {"compiler", compiler()},
          {"instruction_sets", instruction_sets()}};
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::int64_t peak_rss_bytes() {
  // getrusage's ru_maxrss would do, but it begins with that of the program before exec.
  std::istringstream value(value_of("/proc/self/status", "VmHWM", ':'));  // "123456 kB"
  std::int64_t kibibytes = 0;
  check(static_cast<bool>(value >> kibibytes), "/proc/self/status: expected a line VmHWM");
  return kibibytes * 1024;
}

std::string build_commit() { return kBuildCommit; }

}  // namespace xsa
