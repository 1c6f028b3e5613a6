#pragma once

#include <functional>

#include "stretto/comm/group.h"

namespace stretto::comm {

// Runs `body` once per rank. Each rank is a thread of this process with its own member of one group (back end
// shm), so that collectives and strategies can be tested without processes. Returns when all have ended;
// rethrows the first exception.
void run_rank_threads(int ranks, const std::function<void(Group&)>& body);

// Like above, with options for the groups.
void run_rank_threads(int ranks, const GroupOptions& options, const std::function<void(Group&)>& body,
                      const std::string& backend = "shm");

}  // namespace stretto::comm
