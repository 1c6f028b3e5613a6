#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "stretto/base/fd.h"
#include "stretto/launch/process/signals.h"

namespace stretto::launch {

// The file that `name` means as a command: itself when it holds a slash, else found in the folders of `path`
// (as PATH). Throws ConfigError that says what is wrong with it.
std::filesystem::path find_program(const std::string& name, const std::string& path);

struct SpawnOptions {
  std::filesystem::path program;
  std::vector<std::string> command;      // argv, the program's name included
  std::vector<std::string> environment;  // all of it, as NAME=value
  std::vector<int> cores = {};           // may run on these only; empty: anywhere
  bool keep_stdin = false;               // the launcher's own standard input; else /dev/null
  bool hold_save = false;                // SIGUSR1 waits until the program handles it (base/process.h)
  int inherited = -1;                    // a descriptor that it gets under the same number; -1: none
};

// How a process ended: by a signal, or with an exit code.
struct Ending {
  int code = 0;
  int signal = 0;  // 0: none
  bool good() const { return code == 0 && signal == 0; }
  int exit_code() const { return signal != 0 ? 128 + signal : code; }  // as shells count
  std::string text() const;  // "was killed by SIGSEGV (Segmentation fault)", "ended with exit code 3"
};

// What the kernel says a process does: "R" running, "S" sleeping, "T" stopped by a signal, "Z" dead and not
// yet reaped (proc(5)); empty where there is none.
std::string process_state(pid_t pid);

// A child process with its descendants, all in a process group of their own. The child dies with the
// launcher, whatever kills that (PR_SET_PDEATHSIG); all of the group die when this object does, so none is
// left behind on any path.
class Process {
 public:
  // Starts it. Throws ConfigError where the system cannot run the program, IoError where it can make no
  // process.
  Process(const SpawnOptions& options, const SignalGuard& signals);
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();

  pid_t pid() const { return pid_; }
  bool alive() const { return alive_; }
  Fd& out() { return out_; }  // what it writes to its standard output; non-blocking
  Fd& err() { return err_; }

  // Sends a signal to the whole group; nothing when the process has ended.
  void signal(int signal) const;

  // Whether the program has a handler for it, or has it wait until there is one.
  bool handles(int signal) const;

  // If the process has ended by now: kills what is left of its group, reaps it and tells how it ended.
  std::optional<Ending> reap();

 private:
  pid_t pid_ = -1;
  bool alive_ = false;
  Fd out_, err_;
};

}  // namespace stretto::launch
