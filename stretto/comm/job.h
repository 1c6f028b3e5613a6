#pragma once

#include <memory>
#include <string>

#include "stretto/cluster/environment.h"
#include "stretto/comm/group.h"

namespace stretto {

// This process's place in its job: who it is, whom it talks to, which device it computes on.
struct Job {
  cluster::RankInfo info;
  at::Device device;
  std::unique_ptr<Group> group;
};

// Reads the launcher's environment, chooses the device ("auto", "cpu" or "cuda", as `setting` asks for it) and meets the
// other ranks, to talk through `backend` ("auto" or "gloo"). Throws ConfigError, which begins with `setting`, for a device
// that is not there.
Job join_job(const std::string& device, const std::string& setting, const std::string& backend = "auto");

}  // namespace stretto
