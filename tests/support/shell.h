#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "stretto/base/temp_folder.h"

namespace stretto {

// How a shell command ended. As in a shell, a signal gives 128 + its number; a command that did not end in
// time gives -1, and `err` reports it. Any other code shows that the command did not wait for a timeout that
// is longer than the test's patience, such as that of collectives.
struct ShellResult {
  int exit_code = 0;
  std::string out, err;
};

// A shell command that runs concurrently with the test, in its own process group, which is killed with this
// object. Standard input is empty unless the command redirects it. Begin the command with "exec" to make
// pid() that of the program.
class BackgroundShell {
 public:
  explicit BackgroundShell(const std::string& command);
  BackgroundShell(const BackgroundShell&) = delete;
  BackgroundShell& operator=(const BackgroundShell&) = delete;
  ~BackgroundShell();

  pid_t pid() const { return pid_; }
  bool running() const;
  std::string out() const;  // so far
  std::string err() const;
  ShellResult wait(std::chrono::seconds patience = std::chrono::seconds(120));

 private:
  TempFolder folder_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  pid_t pid_ = -1;
  bool ended_ = false;
};

// Runs a command to its end.
ShellResult shell(const std::string& command);

// The prefix of a command whose programs get `fault` in what they write (file_fault.h).
std::string with_file_fault(const std::string& fault);

// The content of a file in /proc; empty if its process has ended.
std::string read_proc(const std::filesystem::path& path);

// A TCP port of 127.0.0.1 that was free a moment ago.
int free_port();

// The prefix of a command that starts a rank as torchrun does: its environment. Tests run at the same time,
// so that each job needs a port of its own.
std::string torchrun_variables(int rank, int world_size, int port = free_port());

// Processes whose parent is `parent` and whose environment contains `variable` ("RANK=1"); all children with
// "".
std::vector<pid_t> children_of(pid_t parent, const std::string& variable = "");

// Returns true as soon as `condition` holds, which is checked every 20 ms; false if it does not hold within a
// minute.
bool eventually(const std::function<bool()>& condition);

}  // namespace stretto
