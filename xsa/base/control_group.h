// What Linux's control groups (cgroup v1 and v2) allow this process; affinity is apart.
#pragma once

#include <filesystem>
#include <optional>

namespace xsa {

/// Nothing where there is no limit.
struct ControlGroupLimits {
  std::optional<double> cores;         // CPU time a second, e.g. 1.5
  std::optional<double> memory_bytes;  // of v1 and v2, the smallest
};

/// The smallest limits of this process's groups and of those above them, as far as they are
/// mounted. What cannot be read counts as no limit. Files are looked for under `root`:
/// /proc/self/mountinfo, /proc/self/cgroup and the folders that they name.
ControlGroupLimits control_group_limits(const std::filesystem::path& root = "/");

}  // namespace xsa
