#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "stretto/cluster/socket.h"
#include "stretto/launch/rank.h"

namespace stretto::launch {

// How the ranks are stopped.
struct StopOptions {
  // The time between SIGTERM and SIGKILL: if the user ends the job, for ranks to finish the step and save; if
  // a rank has failed, because the others cannot continue without it.
  std::chrono::milliseconds grace{60'000};
  std::chrono::milliseconds failure_grace{500};
  // The time after SIGKILL until the launcher stops waiting for a rank.
  std::chrono::milliseconds death_patience{60'000};
  int exit_code = 0;  // exit code of the launcher if a signal ended the job and all ranks exited with 0
};

// "0.5 s", "60 s".
std::string seconds_text(std::chrono::milliseconds duration);

// Ends the ranks of this host: by SIGTERM, then by SIGKILL at a deadline; finally gives up ranks that survive
// SIGKILL.
class GroupStop {
 public:
  using Clock = cluster::Clock;

  // REQUIRES: `ranks` outlives it.
  GroupStop(std::vector<Rank>& ranks, const StopOptions& options) : ranks_(ranks), options_(options) {}

  bool begun() const { return deadline_.has_value(); }
  std::optional<Clock::time_point> deadline() const { return deadline_; }  // of the next stage
  void postpone(Clock::duration time);

  // Sends SIGTERM on the first call; the earliest deadline of all calls applies.
  void within(std::chrono::milliseconds patience);

  // Sends SIGKILL to all.
  void kill();

  // Call it at the deadline: kills the remaining ranks, or reports those that SIGKILL has not ended and no
  // longer waits for them. Returns their local ranks.
  std::vector<int> next_stage();

  void send(int signal);

  // Whether the rank was ended by a signal of this class.
  bool explains(const Rank& rank, const Ending& ending) const;

 private:
  std::vector<int> give_up();

  std::vector<Rank>& ranks_;
  StopOptions options_;
  std::optional<Clock::time_point> deadline_;
  std::chrono::milliseconds patience_{};  // the time that the ranks were given
  bool killed_ = false;
};

}  // namespace stretto::launch
