#include "stretto/launch/restart.h"

#include <algorithm>

#include <poll.h>

#include "stretto/cluster/socket.h"

namespace stretto::launch {

std::chrono::milliseconds restart_delay(const RestartOptions& options, int restart) {
  auto delay = options.first_delay;
  for (int i = 1; i < restart && delay < options.longest_delay; ++i) delay *= 2;
  return std::min(delay, options.longest_delay);
}

bool is_restartable(const Outcome& outcome) {
  return outcome.exit_code != 0 && outcome.exit_code != usage_error && !outcome.user_signal &&
         !outcome.host_lost;
}

std::optional<int> wait_for_restart(std::chrono::milliseconds delay, const SignalGuard& signals,
                                    const HostLink* link) {
  auto until = cluster::Clock::now() + delay;
  while (cluster::Clock::now() < until) {
    pollfd watched{signals.fd(), POLLIN, 0};
    ::poll(&watched, 1, cluster::poll_timeout(until));
    while (const auto signal = signals.next()) {
      if (asks_to_end(*signal)) return signal;
      if (*signal != SIGTSTP) continue;
      if (link != nullptr) {
        link->refuse_pause();
        continue;
      }
      const auto begin = cluster::Clock::now();
      signals.stop_this_process();
      until += cluster::Clock::now() - begin;
    }
  }
  return std::nullopt;
}

}  // namespace stretto::launch
