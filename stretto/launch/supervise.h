#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "stretto/launch/diagnosis/flight_record.h"
#include "stretto/launch/group_stop.h"
#include "stretto/launch/hosts/link.h"
#include "stretto/launch/process/signals.h"
#include "stretto/launch/rank.h"

namespace stretto::launch {

struct SuperviseOptions {
  StopOptions stop = {};
  std::chrono::milliseconds hang_timeout{300'000};  // 0: hangs are not detected
  bool own_program = false;                         // see LaunchOptions
  // Whether the ranks' log files stay unchanged until the run takes its first step (cluster::note_first_step)
  // or ends with success, unless it had nothing to do (cluster::note_nothing_to_do).
  bool logs_held = false;
  bool logs_are_new = false;  // the caller removes them if the run is refused
  int restart_count = 0;      // number of earlier restarts of the group, for the record
  int max_restarts = 0;
};

// How a group of ranks ended.
struct Outcome {
  int exit_code = 0;                        // the launcher's: see supervise()
  std::optional<int> user_signal = {};      // the signal that asked the launcher to end
  std::string failure = {};                 // the first failure: "rank 1 (process 7) ended with exit code 3"
  std::optional<FlightRecord> record = {};  // taken at the first failure
  bool host_lost = false;                   // the job cannot be restarted without it
  bool logs_held = false;                   // the logs are still held: the run ended without a step
  bool refused = false;  // one of stretto's programs exited with usage_error before its first step
};

inline constexpr int hang_exit_code = 124;  // like timeout(1)

// Forwards the ranks' output and waits until all have ended. The exit code is 0 if every rank exited with 0,
// else that of the first rank that failed (128 + n if signal n killed it), or hang_exit_code (see
// diagnosis.h).
//
// The first failure is reported with its rank, cause and the last lines that were not shown; the other ranks
// get SIGTERM, and SIGKILL soon after. The first SIGINT, SIGTERM, SIGHUP or SIGQUIT to the launcher sends one
// SIGTERM to the ranks; ranks that die of it give 128 + the launcher's own signal. A second one kills them.
// SIGUSR1 is forwarded to each rank whose program handles it.
//
// A rank that exits with usage_error has reported the reason itself: consequential errors of other ranks are
// not shown, nor is the exit itself for stretto's own programs, and likewise if rank 0 of such a program has
// no log file and exits because nobody reads its output any more. A program that cannot be started is a usage
// error, too; one whose start does not end (a stopped process, a dead disk) is a hang.
//
// A rank that has not ended some seconds after SIGKILL is reported and no longer waited for.
//
// SIGTSTP (Ctrl-Z) stops the ranks and then the launcher, like a job of one process; SIGCONT to the launcher
// (fg, bg) continues all, and deadlines exclude the time in between. With a link, SIGTSTP is ignored with a
// message: the other hosts would consider this one lost.
//
// `link`: the connection to the launchers of a job on several hosts; null on one host. With a link, a
// failure, a hang or a signal on one host ends the ranks of all hosts, the outcome is the same on all, and
// the call returns when the ranks of all hosts have ended or their hosts are lost. A rank that is stopped by
// a signal for the link's host_timeout counts as failed.
Outcome supervise(std::vector<Rank>& ranks, const SignalGuard& signals, const cluster::FlightBoard& board,
                  Console& console, const SuperviseOptions& options, HostLink* link = nullptr);

}  // namespace stretto::launch
