#include "stretto/trainer/records/rank_use.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include <unistd.h>

#include <ATen/DeviceAccelerator.h>

namespace stretto::trainer {
namespace {

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1024 * 1024);
}

// The most memory that libtorch has reserved on the GPU, used or cached; 0 on the CPU.
double reserved_mib(at::Device device) {
  if (!device.is_cuda()) return 0;
  const auto stats = at::accelerator::getDeviceStats(device.index());
  return static_cast<double>(stats.reserved_bytes[0].peak) / (1024 * 1024);
}

}  // namespace

Metrics gather_rank_use(const Mesh& mesh, const RankUse& local) {
  using Numbers = std::array<double, 5>;
  const Numbers numbers = {local.seconds, local.communication, resident_mib(), local.data_wait,
                           reserved_mib(mesh.world().device())};
  const auto all =
      mesh.world().all_gather_bytes({reinterpret_cast<const char*>(numbers.data()), sizeof numbers});
  if (mesh.world().rank() != 0) return {};
  double seconds = 0, communication = 0, data_wait = 0, busiest = 0, memory = 0, of_gpu = 0;
  for (const std::string& bytes : all) {
    Numbers of_rank{};
    std::memcpy(of_rank.data(), bytes.data(), std::min(bytes.size(), sizeof of_rank));
    seconds += of_rank[0];
    communication += of_rank[1];
    busiest = std::max(busiest, of_rank[0] - of_rank[1]);
    memory = std::max(memory, of_rank[2]);
    data_wait += of_rank[3];
    of_gpu = std::max(of_gpu, of_rank[4]);
  }
  Metrics values = {{"memory_mib", memory}};
  if (of_gpu > 0) values["gpu_memory_mib"] = of_gpu;
  if (seconds <= 0) return values;
  values["communication"] = communication / seconds;
  values["data_wait"] = data_wait / seconds;
  const double mean = (seconds - communication) / static_cast<double>(all.size());
  if (all.size() > 1 && mean > 0) values["rank_imbalance"] = busiest / mean;
  return values;
}

}  // namespace stretto::trainer
