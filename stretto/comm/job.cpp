#include "stretto/comm/job.h"

#include <cstdlib>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "stretto/base/error.h"
#include "stretto/comm/store.h"

namespace stretto {
namespace {

at::Device choose_device(const std::string& wanted, const std::string& setting, int local_rank) {
  const bool available = at::hasCUDA();
  if (wanted == "cuda" && !available) {
    throw ConfigError(
        "{}: cuda: this libtorch sees no CUDA device; use cpu or auto, or build stretto with a CUDA libtorch",
        setting);
  }
  if (wanted == "cpu" || !available) return at::Device(at::kCPU);
  const int devices = at::detail::getCUDAHooks().deviceCount();
  if (local_rank >= devices) {
    throw ConfigError("rank {} of this host has no GPU: there are {}; start at most that many ranks (-N {})",
                      local_rank, devices, devices);
  }
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(local_rank));
}

// Code that names no index ("cuda") then means this rank's GPU.
void make_current(at::Device device) {
  if (device.is_cuda()) c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
}

std::string choose_backend(const std::string& wanted, at::Device device) {
  if (wanted == "auto") return device.is_cpu() ? "shm" : "nccl";
  if (device.is_cpu()) return wanted;
  throw ConfigError("training.backend: {} does not work on GPUs; use auto, or training.device: cpu", wanted);
}

}  // namespace

Job join_job(const std::string& device, const std::string& setting, const std::string& backend) {
  Job job = {cluster::read_rank_info(), at::Device(at::kCPU), nullptr};
  job.device = choose_device(device, setting, job.info.local_rank);
  make_current(job.device);
  // stretto's launcher gives each rank its cores and sets the number of threads; under others ranks would compete for them.
  const bool threads_are_set = std::getenv("OMP_NUM_THREADS") != nullptr;
  if (job.device.is_cpu() && job.info.local_world_size > 1 && !threads_are_set) at::set_num_threads(1);
  GroupOptions options = {.deadline = job.info.collective_timeout, .device = job.device};
  if (job.info.local_world_size < job.info.world_size)
    options.address = cluster::address_towards({job.info.master_addr, job.info.master_port});
  const auto store = connect_store(job.info, std::chrono::seconds(60));
  job.group = std::make_unique<Group>(choose_backend(backend, job.device), store, job.info.rank,
                                      job.info.world_size, options);
  return job;
}

}  // namespace stretto
