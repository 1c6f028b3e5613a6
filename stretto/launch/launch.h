#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "stretto/launch/restart.h"
#include "stretto/launch/supervise.h"

namespace stretto::launch {

struct LaunchOptions {
  std::vector<std::string> command;       // the program and its arguments, the same for each rank
  std::filesystem::path program = {};     // the file to run where that is not command[0]
  int ranks = 0;                          // 0: default_ranks()
  bool pin = true;                        // on the CPU, each rank to cores of its own
  std::filesystem::path log_folder = {};  // for training_<rank>.log; empty: no log files
  std::map<std::string, std::string> environment =
      {};  // variables for the ranks, on top of the launcher's own
  RestartOptions restart = {};
  StopOptions stop = {};
  std::chrono::milliseconds hang_timeout{300'000};  // how long ranks may stand still; 0: for ever
  // The program is one of stretto's: SIGUSR1 waits until it handles that (base/process.h), and a rank that does not come so
  // far as to keep a record counts as hanging (diagnosis.h).
  bool own_program = false;
  std::filesystem::path flight_record = {};  // file to write after a failure (flight_record.h); empty: none
};

// How many ranks a host starts unless told otherwise: one a GPU that may be used, else one.
int default_ranks();

// Runs the program on all ranks of this host, with the rendezvous store in this process, and returns the exit
// code to end with (see supervise.h). After a failure all ranks are started again, with a new store, as often
// as `restart` allows. The ranks find torchrun's variables in their environment, and STRETTO_STORE with
// STRETTO_SECRET; README.md has the list. Nothing of them outlives the call. REQUIRES: called on the thread
// that ends last, and while no other runs. Throws ConfigError for a program that cannot be started, IoError
// where the system refuses a socket, a process or the log folder.
int run(const LaunchOptions& options);

}  // namespace stretto::launch
