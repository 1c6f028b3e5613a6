#include "stretto/cluster/machine/findings.h"

#include <fmt/format.h>

#include "stretto/base/strings.h"

namespace stretto::machine {

std::vector<Finding> findings(const Machine& machine) {
  std::vector<Finding> found;
#if defined(__x86_64__)
  constexpr bool x86 = true;
#else
  constexpr bool x86 = false;
#endif
  if (x86 && !machine.processor.avx2) {
    found.push_back(
        {fmt::format("{} has no AVX2: matmuls are several times slower", machine.processor.model),
         "use a machine of 2015 or later, or pass the host's CPU features through to the virtual machine"});
  }
  if (machine.huge_pages == "never") {
    found.push_back({"transparent huge pages are off: long passes over memory are slower",
                     "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"});
  }
  if (machine.governor == "powersave" && !machine.clock_follows_load) {
    found.push_back({"the CPU frequency governor is powersave: the clock stays low",
                     "sudo cpupower frequency-set --governor performance"});
  }
  if (machine.core_quota) {
    found.push_back(
        {fmt::format(
             "the container is limited to {:.1f} CPUs but sees {} cores: more ranks than that are throttled",
             *machine.core_quota, machine.cores),
         fmt::format("start at most {} rank{} (-N), or raise the container's limit (--cpus={})",
                     std::max(1, static_cast<int>(*machine.core_quota)), *machine.core_quota < 2 ? "" : "s",
                     machine.cores)});
  }
  if (machine.open_files >= 0 && machine.open_files < 1024) {
    found.push_back({fmt::format("a process may open only {} files", machine.open_files), "ulimit -n 4096"});
  }
  if (machine.memory_available < 1e9) {
    found.push_back({fmt::format("only {} of memory are available", human_bytes(machine.memory_available)),
                     "stop other programs: a rank of a small model needs about 1 GiB"});
  }
  return found;
}

std::vector<Finding> findings(const Processor& processor, const Measurements& measured) {
  std::vector<Finding> found;
  const double peak = processor.fp32_operations_per_cycle() * measured.clock_ghz;
  // Some Xeons with AVX-512 have one FMA unit where others have two, and reach half of the peak at best.
  const bool perhaps_one_unit = processor.avx512 && !processor.half_width;
  if (peak > 0 && measured.fp32_gflops < (perhaps_one_unit ? 0.4 : 0.5) * peak) {
    found.push_back(
        {fmt::format("matmuls run at {:.0f} GFLOP/s; the peak of a core is {:.0f}", measured.fp32_gflops,
                     peak),
         "stop other programs on these cores (see top); on a virtual machine, check that its cores are not shared"});
  }
  if (measured.copy_gb_per_s < 2) {
    found.push_back(
        {fmt::format("memory bandwidth of a copy is {:.1f} GB/s per rank", measured.copy_gb_per_s),
         "stop other programs; on a machine with several sockets, bind each rank to local memory (numactl --localalloc)"});
  }
  return found;
}

}  // namespace stretto::machine
