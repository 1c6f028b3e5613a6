#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "stretto/launch/diagnosis/flight_record.h"
#include "stretto/launch/output/rank_output.h"
#include "stretto/launch/process/signals.h"
#include "stretto/launch/process/spawn.h"

namespace stretto::launch {

struct Rank {
  int rank;
  Process process;
  RankOutput output;
};

// "0.5 s", "60 s".
std::string seconds_text(std::chrono::milliseconds duration);

// How long ranks have between SIGTERM and SIGKILL.
struct StopOptions {
  std::chrono::milliseconds grace{60'000};  // when the user ends the job: to finish a step and save it
  std::chrono::milliseconds failure_grace{
      500};  // when a rank has failed: the others can get no further without it
};

struct SuperviseOptions {
  StopOptions stop = {};
  std::chrono::milliseconds hang_timeout{300'000};  // 0: no rank is ever judged to hang
  bool own_program = false;                         // see LaunchOptions
  int restart_count = 0;                            // of this life of the group, for the record
  int max_restarts = 0;
};

// How a group of ranks ended.
struct Outcome {
  int exit_code = 0;                        // the launcher's: see supervise()
  std::optional<int> user_signal = {};      // the one by which the launcher was told to end
  std::string failure = {};                 // the first: "rank 1 (process 7) ended with exit code 3"
  std::optional<FlightRecord> record = {};  // of that moment
};

inline constexpr int hang_exit_code = 124;  // as timeout(1)
inline constexpr int usage_error = 2;       // for a command line, a configuration or data that cannot work

// Carries the ranks' output and waits until all have ended. The exit code is 0 if every rank ended with 0,
// else that of the first that did not (128 + n where signal n killed it), or hang_exit_code where they hung
// (see diagnosis.h).
//
// The first failure is told with its rank, its cause and its last lines; the others then get SIGTERM, and
// SIGKILL soon after. A first SIGINT, SIGTERM, SIGHUP or SIGQUIT of the launcher makes it ask the ranks to
// end, by one SIGTERM; who dies of that gives 128 + the launcher's own signal. A second one kills them.
// SIGUSR1 is passed on to each rank whose program handles it.
// A rank that ends with usage_error has given the reason itself: what other ranks report of its end is not shown, and of
// stretto's own programs the end itself is not either.
Outcome supervise(std::vector<Rank>& ranks, const SignalGuard& signals, const cluster::FlightBoard& board,
                  Console& console, const SuperviseOptions& options);

}  // namespace stretto::launch
