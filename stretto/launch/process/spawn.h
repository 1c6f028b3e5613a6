#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "stretto/base/fd.h"
#include "stretto/launch/process/signals.h"

namespace stretto::launch {

// The program file of the command `name`: `name` itself if it contains a slash, else the first match in the
// folders of `path` (in the form of PATH). Throws ConfigError with the reason if there is none that can be
// run.
std::filesystem::path find_program(const std::string& name, const std::string& path);

// A pipe whose descriptors child processes do not inherit.
struct Pipe {
  Fd read, write;
};
// Throws IoError.
Pipe make_pipe();

struct SpawnOptions {
  std::filesystem::path program;
  std::vector<std::string> command;      // argv, the program's name included
  std::vector<std::string> environment;  // complete, as NAME=value
  std::vector<int> cores = {};           // cores to pin the process to; empty: not pinned
  bool keep_stdin = false;               // inherit the launcher's standard input; else /dev/null
  int input = -1;                        // a descriptor that becomes standard input instead; -1: none
  bool hold_save = false;                // block SIGUSR1 until the program handles it (base/process.h)
  int inherited = -1;                    // a descriptor that the process inherits; -1: none
};

// The exit code for an invalid command line, configuration or data.
inline constexpr int usage_error = 2;

// How a process ended: by a signal, with an exit code, or because it could not run its program.
struct Ending {
  int code = 0;
  int signal = 0;                // 0: none
  std::string start_error = {};  // "could not start notes.txt: Exec format error"; then `code` is usage_error
  bool good() const { return code == 0 && signal == 0; }
  int exit_code() const { return signal != 0 ? 128 + signal : code; }  // as in shells
  // "was killed by SIGSEGV (Segmentation fault)", "ended with exit code 3", or start_error.
  std::string text() const;
};

// The state of a process as in proc(5): "R" running, "S" sleeping, "T" stopped by a signal, "Z" zombie; empty
// if there is no such process.
std::string process_state(pid_t pid);

// A child process and its descendants, in a separate process group. The child is killed when the launcher
// dies, however it dies (PR_SET_PDEATHSIG); the whole group is killed when this object is destroyed.
class Process {
 public:
  // Forks a child process, which then calls exec. exec may take any time (a slow disk) or fail, which reap()
  // reports; no call of this class waits for it. Throws IoError if no process can be created.
  Process(const SpawnOptions& options, const SignalGuard& signals);
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  ~Process();  // waits briefly for the end of a killed child

  pid_t pid() const { return pid_; }
  bool alive() const { return alive_; }  // until reap() returns its end
  bool has_ended() const;                // it need not be reaped yet
  Fd& out() { return out_; }             // the read end of its standard output; non-blocking
  Fd& err() { return err_; }

  // Whether the child is still between fork and exec.
  bool starting();
  const std::filesystem::path& program() const { return program_; }

  // Sends a signal to the whole group; does nothing after the process has ended.
  void signal(int signal);

  // Asks the program to end by SIGTERM. A child that is still starting has nothing to save and may be unable
  // to handle SIGTERM, so it is killed.
  void terminate() { signal(starting() ? SIGKILL : SIGTERM); }
  bool was_killed() const { return was_killed_; }  // by SIGKILL from signal() or terminate()

  // Whether the program has a handler for `signal`, or, if started with hold_save, blocks it until it has
  // one.
  bool handles(int signal) const;

  // If the process has ended: kills the rest of its group, reaps it and returns how it ended.
  std::optional<Ending> reap();

  // Gives up a process that SIGKILL does not end because the kernel waits in it for a disk or a device.
  void abandon() { alive_ = false; }

 private:
  std::filesystem::path program_;
  pid_t pid_ = -1;
  bool alive_ = false;
  bool hold_save_ = false;
  bool was_killed_ = false;
  Fd starting_;          // exec closes the other end; data is the errno of an exec that failed
  int start_error_ = 0;  // that errno
  Fd out_, err_;
};

}  // namespace stretto::launch
