#pragma once

#include <chrono>

#include "stretto/launch/process/signals.h"
#include "stretto/launch/supervise.h"

namespace stretto::launch {

struct RestartOptions {
  int max_restarts = 0;                          // of the whole group, after a failure
  std::chrono::milliseconds first_delay{1'000};  // before the first restart; doubled for each further one
  std::chrono::milliseconds longest_delay{30'000};
};

// The delay before restart number `restart` (1: the first).
std::chrono::milliseconds restart_delay(const RestartOptions& options, int restart);

// Whether the group may be restarted: not if it succeeded, if the user ended it, if a host was lost, or if a
// rank exited with usage_error, which a restart would repeat.
bool is_restartable(const Outcome& outcome);

// Waits for `delay`. Returns early with a signal that asks the launcher to end. `link`: null on one host.
std::optional<int> wait_for_restart(std::chrono::milliseconds delay, const SignalGuard& signals,
                                    const HostLink* link = nullptr);

}  // namespace stretto::launch
