#pragma once

#include <chrono>
#include <vector>

#include "stretto/launch/rank_output.h"
#include "stretto/launch/signals.h"
#include "stretto/launch/spawn.h"

namespace stretto::launch {

struct Rank {
  int rank;
  Process process;
  RankOutput output;
};

// Carries the ranks' output and waits until all have ended; returns the launcher's exit code: 0 if every rank
// ended with 0, else that of the first that did not (128 + n where signal n killed it). The first failure is
// told with its rank, its cause and its last lines; the others then get SIGTERM, and SIGKILL after `grace`.
// SIGINT, SIGTERM, SIGHUP and SIGQUIT of the launcher are passed on to the ranks; a second one kills them.
int supervise(std::vector<Rank>& ranks, const SignalGuard& signals, std::chrono::milliseconds grace);

}  // namespace stretto::launch
