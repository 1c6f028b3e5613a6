#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/shell.h"

namespace stretto {

// The reason why tests cannot create hosts on this system; nullopt if they can. See scripts/testbed.sh.
std::optional<std::string> why_no_hosts();

// A shell command that runs `command` as `ranks_per_host` ranks on each of `hosts` hosts, all with torchrun's
// variables, and ends with the first exit code that is not 0. Rank 0 is on the first host, which is
// MASTER_ADDR.
std::string on_hosts(int hosts, int ranks_per_host, const std::string& command);

// The result of a command on one host.
struct HostResult {
  int exit_code = -1;
  std::string out, err;
  std::vector<std::string> left;  // names of processes that were still alive a second after its end
};

// Runs the shell commands concurrently, each on a separate host (10.77.0.1, 10.77.0.2, ...). In a command,
// `background COMMAND` starts a program whose process id is then $job, `await FILE` waits for a file or, with
// a second argument, for a text in it, and `end` waits for $job and exits with its code. Commands start in
// `folder`, which also gets their results: out.0, err.0 and, once the command has ended, code.0 are those of
// the first host. Commands that still run after `patience` are killed.
std::vector<HostResult> run_on_hosts(const std::filesystem::path& folder,
                                     const std::vector<std::string>& commands,
                                     std::chrono::seconds patience = std::chrono::seconds(120));

}  // namespace stretto
