#include "xsa/base/system.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "xsa/base/commit.h"
#include "xsa/base/error.h"

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

/// The smallest answer of `limit` for this process's control group (cgroup v2) and those above it.
template <class Limit>
double smallest_limit(double unlimited, const Limit& limit) {
  const fs::path root = "/sys/fs/cgroup";
  const fs::path group = value_of("/proc/self/cgroup", "0", ':');  // "0::/path": ":/path"
  double smallest = unlimited;
  fs::path folder = root;
  smallest = std::min(smallest, limit(folder).value_or(unlimited));
  for (const fs::path& part :
       fs::path(group.string().substr(std::min<std::size_t>(1, group.string().size())))) {
    if (part == "/" || part == "..") continue;
    folder /= part;
    smallest = std::min(smallest, limit(folder).value_or(unlimited));
  }
  return smallest;
}

std::optional<double> cpu_quota(const fs::path& group) {
  std::ifstream file(group / "cpu.max");  // "max 100000" or "200000 100000"
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || period <= 0) return std::nullopt;
  return std::max(1.0, std::ceil(quota / period));
}

std::optional<double> memory_limit(const fs::path& group) {
  std::ifstream file(group / "memory.max");  // "max" or bytes
  double bytes = 0;
  if (!(file >> bytes)) return std::nullopt;
  return bytes;
}

/// Cores that this process may use, by affinity and by its control group.
std::int64_t allowed_cores() {
  cpu_set_t set;
  const double by_affinity = ::sched_getaffinity(0, sizeof set, &set) == 0
                                 ? CPU_COUNT(&set)
                                 : std::max(1U, std::thread::hardware_concurrency());
  return static_cast<std::int64_t>(smallest_limit(by_affinity, cpu_quota));
}

std::int64_t allowed_memory() {
  const auto physical =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return static_cast<std::int64_t>(smallest_limit(physical, memory_limit));
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
