#include "stretto/comm/job.h"

#include <cstdlib>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/cluster/interfaces.h"
#include "stretto/tensor/vector_math.h"

namespace stretto::comm {
namespace {

int gpus_of_host() { return at::hasCUDA() ? at::detail::getCUDAHooks().deviceCount() : 0; }

// Makes "cuda" without an index mean this rank's GPU.
void make_current(at::Device device) {
  if (device.is_cuda()) c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

}  // namespace

std::string choose_backend(const std::string& wanted, const std::string& setting, at::Device device,
                           const std::string& device_setting) {
  if (wanted == "auto") return device.is_cpu() ? "shm" : "nccl";
  if (device.is_cpu()) return wanted;
  throw ConfigError("{}: {} does not work on GPUs; use auto, or {}: cpu", setting, wanted, device_setting);
}

at::Device choose_device(const std::string& wanted, const std::string& setting, const cluster::RankInfo& info,
                         int gpus) {
  if (wanted == "cpu" || (wanted == "auto" && gpus == 0)) return at::kCPU;
  if (gpus == 0) {
    throw ConfigError(
        "{}: cuda: this libtorch sees no CUDA device; use cpu or auto, or build stretto with a CUDA libtorch",
        setting);
  }
  if (gpus >= info.local_world_size) return {at::kCUDA, static_cast<at::DeviceIndex>(info.local_rank)};
  if (wanted == "cuda") {
    throw ConfigError(
        "{}: cuda: {} GPU{} for {} ranks of this host, and each rank needs its own; start at most {} (-N {}), or use cpu",
        setting, gpus, gpus == 1 ? "" : "s", info.local_world_size, gpus, gpus);
  }
  if (info.local_rank == 0) {
    log::warning("{}: auto: {} GPU{} for {} ranks of this host: computing on the CPU", setting, gpus,
                 gpus == 1 ? "" : "s", info.local_world_size);
  }
  return at::kCPU;
}

at::Device choose_own_device(const std::string& wanted, const std::string& setting) {
  const at::Device device = choose_device(wanted, setting, {}, gpus_of_host());
  make_current(device);
  return device;
}

Job join_job(const std::string& device, const std::string& setting, const std::string& backend,
             const std::string& backend_setting) {
  Job job = {cluster::read_rank_info(), at::Device(at::kCPU), nullptr};
  job.device = choose_device(device, setting, job.info, gpus_of_host());
  make_current(job.device);
  prepare_vector_math();
  // stretto's launcher gives each rank its cores and sets the number of threads; under others ranks would
  // compete for them.
  const bool threads_are_set = std::getenv("OMP_NUM_THREADS") != nullptr;
  if (job.device.is_cpu() && job.info.local_world_size > 1 && !threads_are_set) at::set_num_threads(1);
  GroupOptions options = {.deadline = job.info.collective_timeout,
                          .secret = job.info.secret,
                          .encrypt = job.info.encrypt,
                          .device = job.device};
  if (job.info.local_world_size < job.info.world_size)
    options.address = cluster::own_address({job.info.master_addr, job.info.master_port});
  const auto store = connect_store(job.info, std::chrono::seconds(60));
  job.group = std::make_unique<Group>(choose_backend(backend, backend_setting, job.device, setting), store,
                                      job.info.rank, job.info.world_size, options);
  return job;
}

}  // namespace stretto::comm
