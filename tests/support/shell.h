#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "stretto/base/temp_folder.h"

namespace stretto {

// How a shell command ended. A signal that ended it gives 128 + its number, as in a shell; a command that was not done in
// time gives -1, and `err` says so.
struct ShellResult {
  int exit_code = 0;
  std::string out, err;
  double seconds = 0;
};

// A shell command that runs beside the test, in a process group of its own that ends with this object. Standard input is
// empty unless the command redirects it. Begin the command with "exec" to make pid() the program's own.
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

// Processes whose parent is `parent` and whose environment holds `variable` ("RANK=1"); any with "".
std::vector<pid_t> children_of(pid_t parent, const std::string& variable = "");

// True as soon as `condition` is, asked every 20 ms; false when it has not come true within a minute.
bool eventually(const std::function<bool()>& condition);

}  // namespace stretto
