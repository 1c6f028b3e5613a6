#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "stretto/cluster/environment.h"
#include "stretto/comm/group.h"

namespace stretto::comm {

// This process in its job: its rank, its device, and the group of all ranks.
struct Job {
  cluster::RankInfo info;
  at::Device device;
  std::unique_ptr<Group> group;
};

// Connects to the rendezvous store of this job, which cluster/rendezvous.h chooses: the launcher's, rank 0's
// or torchrun's, or one in memory for a single rank. Rank 0 logs a warning if the store accepts
// unauthenticated connections from other hosts. Under stretto's launcher, this call also starts recording
// this rank's collectives. Throws DistributedError.
std::shared_ptr<StoreHandle> connect_store(const cluster::RankInfo& info, std::chrono::milliseconds timeout);

// The device of a rank. `wanted` is the value of `setting`: "cpu"; "cuda", which is cuda:<local rank>; or
// "auto": that GPU if the host has one for each of its ranks (`gpus`), else the CPU. Throws ConfigError,
// which begins with `setting`, for "cuda" without a GPU for each rank.
at::Device choose_device(const std::string& wanted, const std::string& setting, const cluster::RankInfo& info,
                         int gpus);

// The device of a process that is not a rank of a job; a GPU, the first one, becomes this thread's current
// device. `wanted` and errors as for choose_device.
at::Device choose_own_device(const std::string& wanted, const std::string& setting);

// The back end of a job's group on `device`. `wanted` is the value of `setting`: "auto" or a back end. Throws
// ConfigError, which begins with `setting`, for one that does not work on GPUs.
std::string choose_backend(const std::string& wanted, const std::string& setting, at::Device device,
                           const std::string& device_setting);

// Reads the launcher's environment, chooses the device (a GPU becomes this thread's current device), and
// forms the group of all ranks, which communicates through `backend` ("auto", "tcp", "gloo" or "mpi"). Throws
// ConfigError like the functions above, and what the store and the group throw.
Job join_job(const std::string& device, const std::string& setting, const std::string& backend = "auto",
             const std::string& backend_setting = "backend");

}  // namespace stretto::comm
