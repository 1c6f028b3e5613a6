#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/cluster/machine/findings.h"

namespace stretto::machine {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Processor, IsReadFromCpuinfo) {
  const Processor old = parse_processor("processor\t: 0\nmodel name\t: Old One\nflags\t\t: sse sse2 avx2\n");
  EXPECT_EQ(old.model, "Old One");
  EXPECT_FALSE(old.avx2) << "it is not useful without fma";
  EXPECT_EQ(old.fp32_operations_per_cycle(), 0);
  const Processor recent =
      parse_processor("model name : New\nflags : fma avx2 avx512f avx512_bf16 amx_bf16\nflags : none\n");
  EXPECT_EQ(recent.instructions(), "AVX-512, AVX-512 bf16, AMX bf16");
  EXPECT_TRUE(recent.bf16());
  EXPECT_EQ(recent.fp32_operations_per_cycle(), 64);
  EXPECT_EQ(recent.bf16_operations_per_cycle(), 1024);
  const Processor zen4 =
      parse_processor("vendor_id : AuthenticAMD\ncpu family : 25\nflags : fma avx2 avx512f avx512_bf16\n");
  EXPECT_EQ(zen4.fp32_operations_per_cycle(), 32) << "512 bits in two turns";
  EXPECT_EQ(zen4.bf16_operations_per_cycle(), 64);
  EXPECT_EQ(parse_processor("model name : EPYC\ncpu family : 26\nmodel : 2\nflags : avx2\n").name(),
            "EPYC (family 26, model 2)");
  EXPECT_EQ(parse_processor("").name(), "unknown");
  EXPECT_EQ(parse_processor("no colon here\n:\n").instructions(), "no vector instructions that are known");
}

#if defined(__x86_64__)
TEST(Processor, TheClockIsPlausible) {
  const double clock = measure_clock();
  EXPECT_GT(clock, 0.2);
  EXPECT_LT(clock, 10);
}
#endif

class FakeRoot : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    const auto file = folder_.path() / path;
    make_folders(file.parent_path());
    write_file_atomic(file, text);
  }
  TempFolder folder_;
};

TEST_F(FakeRoot, IsRead) {
  put("proc/cpuinfo", "model name : X\nflags : fma avx2\n");
  put("proc/meminfo", "MemTotal:       24000000 kB\nMemFree: 1 kB\nMemAvailable:   20000000 kB\n");
  put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  put("sys/fs/cgroup/cpu.max", "50000 100000\n");
  put("sys/fs/cgroup/memory.max", "500000000\n");
  put("dev/nvidia0", "");
  put("dev/nvidia1", "");
  put("dev/nvidiactl", "");
  const Machine machine = read_machine(folder_.path());
  EXPECT_EQ(machine.memory, 5e8) << "a container's limit";
  EXPECT_EQ(machine.huge_pages, "never");
  EXPECT_EQ(machine.gpus, 2);
  ASSERT_TRUE(machine.core_quota.has_value());
  EXPECT_EQ(*machine.core_quota, 0.5);
  EXPECT_THAT(findings(machine), ElementsAre(Field(&Finding::fix, HasSubstr("echo madvise")),
                                             Field(&Finding::fix, HasSubstr("cpupower")),
                                             Field(&Finding::fix, HasSubstr("at most 1 rank (-N)")),
                                             Field(&Finding::what, HasSubstr("of memory are available"))));
}

TEST_F(FakeRoot, ADriverThatFollowsTheLoadIsNotAFinding) {
  put("proc/cpuinfo", "flags : fma avx2\n");
  put("proc/meminfo", "MemTotal: 24000000 kB\nMemAvailable: 20000000 kB\n");
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n");
  EXPECT_THAT(findings(read_machine(folder_.path())), IsEmpty());
}

TEST_F(FakeRoot, AnEmptyMachineIsTolerated) {
  const Machine machine = read_machine(folder_.path());
  EXPECT_EQ(machine.gpus, 0);
  EXPECT_FALSE(machine.core_quota.has_value());
  put("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_FALSE(read_machine(folder_.path()).core_quota.has_value());
}

TEST(Machine, ThisOneIsRead) {
  const Machine machine = read_machine();
  EXPECT_GE(machine.cores, 1);
  EXPECT_GT(machine.memory, 1e8);
  EXPECT_THAT(machine.interfaces, ::testing::Contains(Field(&Interface::address, "127.0.0.1")));
}

TEST(Findings, MeasurementsAreComparedWithThePeak) {
  Processor processor;
  processor.avx2 = true;
  EXPECT_THAT(findings(processor, {.fp32_gflops = 80, .clock_ghz = 3, .copy_gb_per_s = 8}), IsEmpty());
  EXPECT_THAT(findings(processor, {.fp32_gflops = 30, .clock_ghz = 3, .copy_gb_per_s = 1}),
              ElementsAre(Field(&Finding::what, HasSubstr("30 GFLOP/s; the peak of a core is 96")),
                          Field(&Finding::what, HasSubstr("1.0 GB/s"))));
  EXPECT_THAT(findings(processor, {.fp32_gflops = 45, .clock_ghz = 3, .copy_gb_per_s = 8}), SizeIs(1));
  processor.avx512 = true;
  EXPECT_THAT(findings(processor, {.fp32_gflops = 90, .clock_ghz = 3, .copy_gb_per_s = 8}), IsEmpty())
      << "one unit of 512 bits";
}

}  // namespace
}  // namespace stretto::machine
