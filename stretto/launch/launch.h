#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/stream_writer.h"
#include "stretto/launch/hosts/host_options.h"
#include "stretto/launch/restart.h"
#include "stretto/launch/supervise.h"

namespace stretto::launch {

struct LaunchOptions {
  std::vector<std::string> command;       // the program and its arguments, the same for each rank
  std::filesystem::path program = {};     // the file to run, if not command[0]
  int ranks = 0;                          // 0: default_ranks()
  bool pin = true;                        // on the CPU, pin each rank to its own cores
  std::filesystem::path log_folder = {};  // for training_<rank>.log; empty: no log files
  std::map<std::string, std::string> environment =
      {};                  // variables for the ranks, on top of the launcher's own
  HostOptions hosts = {};  // the hosts of the job
  RestartOptions restart = {};
  StopOptions stop = {};
  std::chrono::milliseconds hang_timeout{300'000};  // without progress before the job is aborted; 0: never
  // How long a collective of stretto's ranks waits for the other ranks; 0: without limit. nullopt:
  // STRETTO_COLLECTIVE_TIMEOUT, else the default of ranks (600 s), or twice hang_timeout if that is longer,
  // so that the launcher's report comes first.
  std::optional<std::chrono::seconds> collective_timeout = std::nullopt;
  // Whether the program is one of stretto's: SIGUSR1 then stays pending until it has a handler
  // (base/process.h), and a rank that never starts its flight record counts as hanging (diagnosis.h).
  bool own_program = false;
  StreamWriter::Limits output = {};          // of standard output and standard error
  std::filesystem::path flight_record = {};  // file to write after a failure (flight_record.h); empty: none
};

// The default number of ranks on a host: one per visible GPU, or one.
int default_ranks();

// Runs the program on all ranks of this host, with the rendezvous store in this process. Returns the exit
// code for the launcher (see supervise.h). After a failure all ranks are restarted with a new store, as often
// as `restart` allows. With several hosts (hosts.nodes), it first connects to their launchers
// (hosts/meeting.h); the launcher with node rank 0 then runs the store, and the exit code is the same on all
// hosts. README.md lists the environment of a rank. No process of a rank outlives the call. REQUIRES: called
// on the main thread while no other thread runs. Throws ConfigError if the program is not found, IoError if
// the system refuses a socket, a process or the log folder, and the exceptions of meet_hosts().
int run(const LaunchOptions& options);

}  // namespace stretto::launch
