#include "stretto/host/findings.h"

#include <fmt/format.h>

#include "stretto/base/strings.h"

namespace stretto::host {

std::vector<Finding> findings(const Machine& machine) {
  std::vector<Finding> found;
#if defined(__x86_64__)
  constexpr bool x86 = true;
#else
  constexpr bool x86 = false;
#endif
  if (x86 && !machine.processor.avx2) {
    found.push_back(
        {fmt::format("{} has no AVX2: products of matrices take several times as long",
                     machine.processor.model),
         "choose a machine of 2015 or later, or pass the processor's features on to the virtual one"});
  }
  if (machine.huge_pages == "never") {
    found.push_back({"transparent huge pages are off: long passes over memory are slower",
                     "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"});
  }
  if (machine.governor == "powersave" && !machine.clock_follows_load) {
    found.push_back(
        {"the clock is governed to save power", "sudo cpupower frequency-set --governor performance"});
  }
  if (machine.core_quota) {
    found.push_back(
        {fmt::format("the container may use {:.1f} cores' time, but sees {}: ranks will be stopped in turns",
                     *machine.core_quota, machine.cores),
         fmt::format("start at most {} rank{} (-N), or give the container more (--cpus={})",
                     std::max(1, static_cast<int>(*machine.core_quota)), *machine.core_quota < 2 ? "" : "s",
                     machine.cores)});
  }
  if (machine.open_files >= 0 && machine.open_files < 1024) {
    found.push_back({fmt::format("a process may open {} files only", machine.open_files), "ulimit -n 4096"});
  }
  if (machine.memory_available < 1e9) {
    found.push_back({fmt::format("{} of memory are free", human_bytes(machine.memory_available)),
                     "end other programs: a rank of a small model takes about 1 GiB"});
  }
  return found;
}

std::vector<Finding> findings(const Processor& processor, const Measurements& measured) {
  std::vector<Finding> found;
  const double peak = processor.fp32_operations_a_cycle() * measured.clock_ghz;
  // Some Xeons with AVX-512 have one unit where others have two, and reach half of the peak at best.
  const bool perhaps_one_unit = processor.avx512 && !processor.half_width;
  if (peak > 0 && measured.fp32_gflops < (perhaps_one_unit ? 0.4 : 0.5) * peak) {
    found.push_back(
        {fmt::format("matrix products reach {:.0f} of the {:.0f} GFLOP/s that a core could",
                     measured.fp32_gflops, peak),
         "end other programs on these cores (top), and ask whether the machine shares its cores with others"});
  }
  if (measured.copy_gb_per_s < 2) {
    found.push_back(
        {fmt::format("memory is copied at {:.1f} GB/s a rank", measured.copy_gb_per_s),
         "end other programs; on machines with several sockets bind ranks to their own memory (numactl --localalloc)"});
  }
  return found;
}

}  // namespace stretto::host
