#pragma once

#include <memory>
#include <string>

#include "stretto/cluster/environment.h"
#include "stretto/comm/group.h"

namespace stretto {

// This process in its job: its rank, its device, and the group of all ranks.
struct Job {
  cluster::RankInfo info;
  at::Device device;
  std::unique_ptr<Group> group;
};

// Reads the launcher's environment, chooses the device and forms the group of all ranks, which communicates through
// `backend` ("auto" or "gloo"). `device` is the value of `setting`: "cpu", "cuda" or "auto", which is cuda:<local rank> where
// libtorch sees a GPU, else the CPU; that GPU becomes this thread's current device. Throws ConfigError, which begins with
// `setting`, for a device that does not exist.
Job join_job(const std::string& device, const std::string& setting, const std::string& backend = "auto");

}  // namespace stretto
