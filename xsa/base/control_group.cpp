#include "xsa/base/control_group.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace xsa {
namespace {

namespace fs = std::filesystem;

using Limit = std::function<std::optional<double>(const fs::path& group)>;

/// A hierarchy of groups. Version 2 has one, which stands for every controller; version 1 may have
/// one for each.
struct Hierarchy {
  bool is_v2 = false;
  std::vector<std::string> controllers;  // v1
  std::string root;                      // the group that is mounted, "/" for the topmost
  fs::path mount;
};

std::vector<std::string> cut(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The kernel writes a space in a path as \040, and other bytes likewise.
std::string unescape(std::string_view text) {
  std::string plain;
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i + 1, 3);
    if (text[i] == '\\' && digits.size() == 3 &&
        std::all_of(digits.begin(), digits.end(), is_octal)) {
      plain += static_cast<char>(std::stoi(std::string(digits), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

/// "32 31 0:29 /root /sys/fs/cgroup/cpu rw,relatime shared:1 - cgroup cgroup rw,cpu"
std::vector<Hierarchy> mounted_hierarchies(const fs::path& root) {
  std::vector<Hierarchy> found;
  std::ifstream lines(root / "proc/self/mountinfo");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string ignored, group, mount, word, type, options;
    if (!(words >> ignored >> ignored >> ignored >> group >> mount)) continue;
    while (words >> word && word != "-") continue;
    if (!(words >> type >> ignored >> options)) continue;
    if (type != "cgroup" && type != "cgroup2") continue;
    const fs::path relative = fs::path(unescape(mount)).relative_path();
    found.push_back({type == "cgroup2", cut(options, ','), unescape(group), root / relative});
  }
  return found;
}

/// The group of this process by hierarchy: "" for v2, the controller's name for v1. A line is
/// "4:cpu,cpuacct:/group" or "0::/group".
std::map<std::string, std::string> own_groups(const fs::path& root) {
  std::map<std::string, std::string> groups;
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view text(line);
    for (const std::string& controller : cut(text.substr(first + 1, second - first - 1), ','))
      groups[controller] = text.substr(second + 1);
  }
  return groups;
}

std::optional<double> smaller(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

/// From the mounted group down to `group`. A group outside of what is mounted, as a container may
/// see it, has the mounted one alone.
std::optional<double> smallest(const Hierarchy& hierarchy, const std::string& group,
                               const Limit& limit) {
  fs::path folder = hierarchy.mount;
  std::optional<double> found = limit(folder);
  const fs::path below = fs::path(group).lexically_relative(hierarchy.root);
  if (below.empty() || *below.begin() == "..") return found;
  for (const fs::path& part : below) {
    if (part == "." || part.empty()) continue;
    folder /= part;
    found = smaller(found, limit(folder));
  }
  return found;
}

/// The first numbers of a file; nothing unless all are there, as where it says "max".
template <class... Number>
bool read_numbers(const fs::path& file, Number&... numbers) {
  std::ifstream text(file);
  return static_cast<bool>((text >> ... >> numbers));
}

std::optional<double> cores_v2(const fs::path& group) {  // "max 100000" or "200000 100000"
  double quota = 0, period = 0;
  if (!read_numbers(group / "cpu.max", quota, period) || quota <= 0 || period <= 0)
    return std::nullopt;
  return quota / period;
}

std::optional<double> cores_v1(const fs::path& group) {  // a quota of -1: no limit
  double quota = 0, period = 0;
  if (!read_numbers(group / "cpu.cfs_quota_us", quota) ||
      !read_numbers(group / "cpu.cfs_period_us", period) || quota <= 0 || period <= 0)
    return std::nullopt;
  return quota / period;
}

std::optional<double> bytes_in(const fs::path& file) {
  double bytes = 0;
  if (!read_numbers(file, bytes)) return std::nullopt;
  return bytes;
}

}  // namespace

ControlGroupLimits control_group_limits(const fs::path& root) {
  const std::map<std::string, std::string> groups = own_groups(root);
  const auto find = [&](const char* controller, const Limit& v1, const Limit& v2) {
    std::optional<double> found;
    for (const Hierarchy& hierarchy : mounted_hierarchies(root)) {
      const auto& names = hierarchy.controllers;
      if (!hierarchy.is_v2 && std::find(names.begin(), names.end(), controller) == names.end())
        continue;
      const auto group = groups.find(hierarchy.is_v2 ? "" : controller);
      found = smaller(found, smallest(hierarchy, group == groups.end() ? "/" : group->second,
                                      hierarchy.is_v2 ? v2 : v1));
    }
    return found;
  };
  return {
      .cores = find("cpu", cores_v1, cores_v2),
      .memory_bytes = find(
          "memory", [](const fs::path& group) { return bytes_in(group / "memory.limit_in_bytes"); },
          [](const fs::path& group) { return bytes_in(group / "memory.max"); })};
}

}  // namespace xsa
