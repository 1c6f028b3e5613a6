#include <algorithm>
#include <chrono>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/cluster/machine/findings.h"
#include "stretto/comm/job.h"
#include "stretto/programs/arguments/doctor_report.h"
#include "stretto/programs/stretto_rank/verbs.h"

namespace stretto::rank {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds duration{600};  // duration of each measurement

// Seconds of the fastest call within `duration`, started on all ranks together.
template <class Call>
double fastest(Group& group, const Call& call) {
  call();
  group.barrier();
  double best = 1e9;
  for (const auto start = Clock::now(); Clock::now() - start < duration;) {
    const auto before = Clock::now();
    call();
    best = std::min(best, seconds_since(before));
  }
  return best;
}

// Synchronises with the GPU if `result` is on one.
void wait_for(const Tensor& result) {
  if (!result.device().is_cpu()) result.flatten()[0].item<float>();
}

// Seconds of the fastest all_reduce. The number of calls is fixed because all ranks must make the same calls.
double fastest_all_reduce(Group& group, int64_t bytes, at::Device device) {
  const Tensor tensor = at::zeros({bytes / 4}, at::TensorOptions(at::kFloat).device(device));
  double best = 1e9;
  for (int i = 0; i < 11; ++i) {
    group.barrier();
    const auto before = Clock::now();
    group.all_reduce(tensor).wait();
    wait_for(tensor);
    if (i == 0) continue;  // warm-up
    best = std::min(best, seconds_since(before));
  }
  return best;
}

double gflops(Group& group, at::Device device, at::ScalarType dtype) {
  const int64_t n = device.is_cpu() ? 768 : 4096;
  const Tensor a = at::ones({n, n}, at::TensorOptions(dtype).device(device));
  const auto operations = 2.0 * static_cast<double>(n * n * n);
  return operations /
         fastest(group,
                 [&] {
                   const Tensor c = at::mm(a, a);
                   wait_for(c);
                 }) /
         1e9;
}

// The minimum over all ranks.
double slowest(Group& group, at::Device device, double value) {
  const Tensor tensor = at::full({1}, value, at::TensorOptions(at::kDouble).device(device));
  group.all_reduce(tensor, ReduceOp::min).wait();
  return tensor.item<double>();
}

}  // namespace

void doctor(const std::filesystem::path& report) {
  comm::Job job = comm::join_job("auto", "doctor");
  log::set_rank(job.info.rank, job.info.rank == 0);
  Group& group = *job.group;
  log::info("libtorch   {}; communication back end: {}", TORCH_VERSION, group.transport());
  const machine::Processor processor = machine::parse_processor(read_file("/proc/cpuinfo"));
  machine::Measurements measured;
  double bf16_gflops = 0;
  const auto product = [&](const char* name, at::ScalarType dtype, double peak) {
    const double rate = slowest(group, job.device, gflops(group, job.device, dtype));
    log::info("{}  {:.0f} GFLOP/s per rank in matmuls{}", name, rate,
              peak > 0 ? fmt::format(": {:.0f} % of the peak of a core at {:.1f} GHz", 100 * rate / peak,
                                     measured.clock_ghz)
                       : "");
    return rate;
  };
  if (job.device.is_cpu()) {
    at::set_num_threads(1);  // the measurement is compared with the peak of one core
    measured.clock_ghz = slowest(group, job.device, machine::measure_clock());
    measured.fp32_gflops =
        product("fp32     ", at::kFloat, processor.fp32_operations_per_cycle() * measured.clock_ghz);
    if (processor.bf16()) bf16_gflops = product("bf16     ", at::kBFloat16, 0);
    const Tensor source = at::ones({32 << 20}, at::kFloat), target = at::empty_like(source);
    const double seconds = fastest(group, [&] { Tensor(target).copy_(source); });
    measured.copy_gb_per_s = slowest(group, job.device, static_cast<double>(source.nbytes()) / seconds / 1e9);
    log::info("copying    {:.1f} GB/s per rank", measured.copy_gb_per_s);
  } else {
    if (!report.empty())
      throw ConfigError("--report: plans of job scripts are for hosts without GPUs, but this one has some");
    product("fp32     ", at::kFloat, 0);
    product("bf16     ", at::kBFloat16, 0);
  }
  if (group.size() > 1) {
    log::info("all-reduce 64 KiB {:.3f} ms, 25 MiB {:.1f} ms over {} ranks",
              1e3 * fastest_all_reduce(group, 64 << 10, job.device),
              1e3 * fastest_all_reduce(group, 25 << 20, job.device), group.size());
  }
  const auto slow =
      job.device.is_cpu() ? machine::findings(processor, measured) : std::vector<machine::Finding>{};
  for (const auto& [what, fix] : slow) log::info("fix        {}: {}", what, fix);
  if (slow.empty() && machine::findings(machine::read_machine()).empty()) log::info("no problems found");
  if (!report.empty() && job.info.rank == 0) {
    const machine::Machine machine = machine::read_machine();
    arguments::write_doctor_report({.cores = machine.cores,
                                    .ranks = group.size(),
                                    .memory = machine.memory_available,
                                    .fp32_gflops = measured.fp32_gflops,
                                    .bf16_gflops = bf16_gflops,
                                    .copy_gb_per_s = measured.copy_gb_per_s},
                                   report);
  }
  group.barrier();
}

}  // namespace stretto::rank
