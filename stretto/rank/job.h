#pragma once

#include "stretto/cluster/environment.h"
#include "stretto/comm/group.h"
#include "stretto/config/recipe.h"

namespace stretto::rank {

// This process's place in its job: who it is, whom it talks to, which device it computes on.
struct Job {
  cluster::RankInfo info;
  at::Device device;
  std::unique_ptr<Group> group;
};

// Reads the launcher's environment, chooses the device that training.device asks for and meets the other ranks.
// Throws ConfigError for a device that is not there.
Job join_job(const TrainingConfig& training);

}  // namespace stretto::rank
