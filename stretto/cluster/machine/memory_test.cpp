#include "stretto/cluster/machine/memory.h"

#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"

namespace stretto::machine {
namespace {

class FakeMemory : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    const auto file = folder_.path() / path;
    make_folders(file.parent_path());
    write_file_atomic(file, text);
  }
  double available() const { return available_memory(folder_.path()); }
  TempFolder folder_;
};

TEST_F(FakeMemory, IsLimitedByTheMachine) {
  put("proc/meminfo", "MemTotal: 24000000 kB\nMemAvailable:   20000000 kB\n");
  EXPECT_EQ(available(), 2e10 * 1.024);
}

TEST_F(FakeMemory, IsLimitedByTheTightestGroup) {
  put("proc/meminfo", "MemAvailable: 20000000 kB\n");
  put("proc/self/cgroup", "0::/user/job\n");
  put("sys/fs/cgroup/user/memory.max", "4000000\n");
  put("sys/fs/cgroup/user/memory.current", "3000000\n");
  put("sys/fs/cgroup/user/memory.stat", "anon 5\ninactive_file 500000\n");
  put("sys/fs/cgroup/user/job/memory.max", "max\n");
  EXPECT_EQ(available(), 1.5e6);
  put("sys/fs/cgroup/memory.max", "1000000\n");  // as in a container
  EXPECT_EQ(available(), 1e6);
}

TEST_F(FakeMemory, IsLimitedByAGroupOfVersion1) {
  put("proc/meminfo", "MemAvailable: 20000000 kB\n");
  put("proc/self/cgroup", "9:cpu:/\n4:memory:/job\n0::/\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "3000000\n");
  put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1000000\n");
  EXPECT_EQ(available(), 2e6);
}

TEST(Memory, ThisMachineHasAvailableMemory) {
  EXPECT_GT(available_memory(), 1e6);
  EXPECT_LT(available_memory(), 1e15);
}

}  // namespace
}  // namespace stretto::machine
