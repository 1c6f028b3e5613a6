#pragma once

#include <string>

#include "stretto/launch/output/rank_output.h"
#include "stretto/launch/process/spawn.h"

namespace stretto::launch {

// A rank of this host.
struct Rank {
  int rank;
  int local_rank;  // its index among the ranks of this host
  Process process;
  RankOutput output;
};

// "rank 1 (process 7)", "rank 1 on node-7 (process 7)".
std::string name_of(const Rank& rank, bool with_host);

// "rank 1 (process 7) ended with exit code 3; its log is run/training_1.log", with the rank's last lines.
std::string describe_end(const Rank& rank, const std::string& name, const Ending& ending, LastLines which,
                         bool with_log);

}  // namespace stretto::launch
