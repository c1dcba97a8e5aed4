#include "xsa/base/control_group.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "tests/support/temp_folder.h"
#include "xsa/base/system.h"

namespace xsa {
namespace {

using ::testing::DoubleEq;
using ::testing::Eq;
using ::testing::Optional;

/// A made-up machine's files.
class ControlGroup : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) { root_.write(path, text); }
  void version_2(const std::string& group, const std::string& mounted = "/") {
    write("proc/self/mountinfo",
          "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
          "30 23 0:26 " +
              mounted +
              " /sys/fs/cgroup rw,nosuid shared:9 master:3 - cgroup2 cgroup2 rw,nsdelegate\n");
    write("proc/self/cgroup", "0::" + group + "\n");
  }
  void version_1(const std::string& group, const std::string& mounted = "/") {
    write("proc/self/mountinfo",
          "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
          "32 31 0:29 " +
              mounted +
              " /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
              "35 31 0:32 " +
              mounted +
              " /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
              "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n");
    write("proc/self/cgroup",
          "5:cpuset:/\n4:memory:" + group + "\n2:cpu,cpuacct:" + group + "\n1:name=systemd:/\n");
  }
  void quota_1(const std::string& folder, const std::string& quota, const std::string& period) {
    write("sys/fs/cgroup/cpu,cpuacct/" + folder + "cpu.cfs_quota_us", quota + "\n");
    write("sys/fs/cgroup/cpu,cpuacct/" + folder + "cpu.cfs_period_us", period + "\n");
  }
  ControlGroupLimits limits() const { return control_group_limits(root_.path()); }

 private:
  xsa::testing::TempFolder root_;
};

TEST_F(ControlGroup, AMachineWithoutGroupsHasNoLimits) {
  EXPECT_EQ(limits().cores, std::nullopt);
  EXPECT_EQ(limits().memory_bytes, std::nullopt);
}

TEST_F(ControlGroup, Version2HasTheQuotaOfItsGroup) {
  version_2("/jobs/mine");
  write("sys/fs/cgroup/jobs/mine/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/jobs/mine/memory.max", "1073741824\n");
  EXPECT_THAT(limits().cores, Optional(DoubleEq(1.5)));
  EXPECT_THAT(limits().memory_bytes, Optional(DoubleEq(1073741824)));
}

TEST_F(ControlGroup, Version2SaysMaxWhereThereIsNoLimit) {
  version_2("/jobs/mine");
  write("sys/fs/cgroup/jobs/mine/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/jobs/mine/memory.max", "max\n");
  EXPECT_EQ(limits().cores, std::nullopt);
  EXPECT_EQ(limits().memory_bytes, std::nullopt);
}

TEST_F(ControlGroup, TheSmallestOfNestedGroupsCounts) {
  version_2("/a/b/c");
  write("sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  write("sys/fs/cgroup/a/b/cpu.max", "40000 20000\n");
  write("sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  write("sys/fs/cgroup/a/memory.max", "4096\n");
  write("sys/fs/cgroup/a/b/c/memory.max", "8192\n");
  EXPECT_THAT(limits().cores, Optional(DoubleEq(2)));
  EXPECT_THAT(limits().memory_bytes, Optional(DoubleEq(4096)));
}

TEST_F(ControlGroup, ASiblingsLimitIsNotOurs) {
  version_2("/a/mine");
  write("sys/fs/cgroup/a/other/cpu.max", "100000 100000\n");
  write("sys/fs/cgroup/a/mine2/cpu.max", "100000 100000\n");
  EXPECT_EQ(limits().cores, std::nullopt);
}

TEST_F(ControlGroup, Version1HasAHierarchyForEachController) {
  version_1("/docker/0a1b");
  quota_1("", "-1", "100000");
  quota_1("docker/0a1b/", "50000", "100000");
  write("sys/fs/cgroup/memory/docker/0a1b/memory.limit_in_bytes", "2147483648\n");
  EXPECT_THAT(limits().cores, Optional(DoubleEq(0.5)));
  EXPECT_THAT(limits().memory_bytes, Optional(DoubleEq(2147483648)));
}

TEST_F(ControlGroup, Version1SaysMinusOneWhereThereIsNoQuota) {
  version_1("/docker/0a1b");
  quota_1("", "-1", "100000");
  quota_1("docker/0a1b/", "-1", "100000");
  EXPECT_EQ(limits().cores, std::nullopt);
}

// A container sees its own group mounted as the topmost, and reads the host's name of it.
TEST_F(ControlGroup, AContainersGroupIsWhereItIsMounted) {
  version_1("/docker/0a1b", "/docker/0a1b");
  quota_1("", "100000", "100000");
  EXPECT_THAT(limits().cores, Optional(DoubleEq(1)));
  version_1("/docker/0a1b/inner", "/docker/0a1b");
  quota_1("inner/", "20000", "100000");
  EXPECT_THAT(limits().cores, Optional(DoubleEq(0.2)));
}

TEST_F(ControlGroup, AGroupOutsideOfWhatIsMountedHasTheMountedLimit) {
  version_2("/../../other");
  write("sys/fs/cgroup/cpu.max", "100000 50000\n");
  write("other/cpu.max", "1000 100000\n");
  EXPECT_THAT(limits().cores, Optional(DoubleEq(2)));
  version_2("/elsewhere", "/docker/0a1b");
  EXPECT_THAT(limits().cores, Optional(DoubleEq(2)));
}

TEST_F(ControlGroup, WhereBothVersionsAreMountedTheSmallerLimitCounts) {
  write("proc/self/mountinfo",
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "1:cpu:/\n0::/u\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_THAT(limits().cores, Optional(DoubleEq(4)));
  write("sys/fs/cgroup/unified/u/cpu.max", "300000 100000\n");
  EXPECT_THAT(limits().cores, Optional(DoubleEq(3)));
}

TEST_F(ControlGroup, AMountPointMayHaveASpaceInItsName) {
  write("proc/self/mountinfo", "30 23 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "0::/a\n");
  write("my groups/a/cpu.max", "100000 100000\n");
  EXPECT_THAT(limits().cores, Optional(DoubleEq(1)));
}

TEST_F(ControlGroup, DamagedFilesAreNoLimits) {
  version_2("/a");
  for (const char* text : {"", "x", "100000", "-5 100000", "100000 0"}) {
    write("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(limits().cores, std::nullopt) << text;
  }
  write("proc/self/mountinfo", "30 23\n\n - - -\n");
  write("proc/self/cgroup", "nonsense\n::\n");
  EXPECT_EQ(limits().cores, std::nullopt);
}

TEST(AllowedCores, AQuotaIsRoundedUpAndIsAtLeastOne) {
  const std::int64_t by_affinity = allowed_cores({});
  EXPECT_EQ(allowed_cores({.cores = 0.2}), 1);
  EXPECT_EQ(allowed_cores({.cores = 1.0}), 1);
  EXPECT_EQ(allowed_cores({.cores = 1.1}), std::min<std::int64_t>(2, by_affinity));
  EXPECT_EQ(allowed_cores({.cores = 2.0}), std::min<std::int64_t>(2, by_affinity));
  EXPECT_EQ(allowed_cores({.cores = 1e9}), by_affinity);
}

}  // namespace
}  // namespace xsa
