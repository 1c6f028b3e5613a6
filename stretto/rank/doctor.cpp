#include <algorithm>
#include <chrono>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/comm/job.h"
#include "stretto/host/findings.h"
#include "stretto/rank/verbs.h"

namespace stretto::rank {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds patience{600};  // of each measurement

// Seconds of one call, the fastest of those that fit into `patience` once all ranks have begun.
template <class Call>
double fastest(Group& group, const Call& call) {
  call();
  group.barrier();
  double best = 1e9;
  for (const auto start = Clock::now(); Clock::now() - start < patience;) {
    const auto before = Clock::now();
    call();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - before).count());
  }
  return best;
}

// Until a GPU has done what it was told.
void wait_for(const Tensor& result) {
  if (!result.device().is_cpu()) result.flatten()[0].item<float>();
}

// The same for a collective, which all ranks must call equally often.
double fastest_all_reduce(Group& group, int64_t bytes, at::Device device) {
  const Tensor tensor = at::zeros({bytes / 4}, at::TensorOptions(at::kFloat).device(device));
  double best = 1e9;
  for (int i = 0; i < 11; ++i) {
    group.barrier();
    const auto before = Clock::now();
    group.all_reduce(tensor).wait();
    wait_for(tensor);
    if (i == 0) continue;  // sets things up
    best = std::min(best, std::chrono::duration<double>(Clock::now() - before).count());
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

// What the slowest rank has measured.
double slowest(Group& group, at::Device device, double value) {
  const Tensor tensor = at::full({1}, value, at::TensorOptions(at::kDouble).device(device));
  group.all_reduce(tensor, ReduceOp::min).wait();
  return tensor.item<double>();
}

}  // namespace

void doctor() {
  Job job = join_job("auto", "doctor");
  log::set_rank(job.info.rank, job.info.rank == 0);
  Group& group = *job.group;
  log::info("libtorch   {}; ranks talk through {}", TORCH_VERSION, group.transport());
  const host::Processor processor = host::parse_processor(read_file("/proc/cpuinfo"));
  host::Measurements measured;
  const auto product = [&](const char* name, at::ScalarType dtype, double peak) {
    const double rate = slowest(group, job.device, gflops(group, job.device, dtype));
    log::info("{}  {:.0f} GFLOP/s a rank in products of matrices{}", name, rate,
              peak > 0 ? fmt::format(": {:.0f} % of what a core can do at {:.1f} GHz", 100 * rate / peak,
                                     measured.clock_ghz)
                       : "");
    return rate;
  };
  if (job.device.is_cpu()) {
    at::set_num_threads(1);  // what is measured is held against what a core can do
    measured.clock_ghz = slowest(group, job.device, host::measure_clock());
    measured.fp32_gflops =
        product("fp32     ", at::kFloat, processor.fp32_operations_a_cycle() * measured.clock_ghz);
    if (processor.bf16()) product("bf16     ", at::kBFloat16, 0);
    const Tensor source = at::ones({32 << 20}, at::kFloat), target = at::empty_like(source);
    const double seconds = fastest(group, [&] { Tensor(target).copy_(source); });
    measured.copy_gb_per_s = slowest(group, job.device, static_cast<double>(source.nbytes()) / seconds / 1e9);
    log::info("copying    {:.1f} GB/s a rank", measured.copy_gb_per_s);
  } else {
    product("fp32     ", at::kFloat, 0);
    product("bf16     ", at::kBFloat16, 0);
  }
  if (group.size() > 1) {
    log::info("all-reduce 64 KiB {:.3f} ms, 25 MiB {:.1f} ms over {} ranks",
              1e3 * fastest_all_reduce(group, 64 << 10, job.device),
              1e3 * fastest_all_reduce(group, 25 << 20, job.device), group.size());
  }
  if (job.device.is_cpu()) {
    for (const auto& [what, mend] : host::findings(processor, measured))
      log::info("to mend    {}: {}", what, mend);
  }
  group.barrier();
}

}  // namespace stretto::rank
