#pragma once

#include <string>
#include <vector>

namespace stretto::cli {

// The command line of this process with the program replaced by stretto-rank, which links libtorch and runs
// the verbs that compute. It is searched for in ../libexec/stretto relative to this program. Throws
// ConfigError if it is missing.
std::vector<std::string> rank_command();

// Like rank_command(), with these arguments instead of those of this process.
std::vector<std::string> rank_command(std::vector<std::string> arguments);

// Executes a rank_command() in place of this process (execv). Throws IoError on failure; does not return.
[[noreturn]] void become_rank_program(const std::vector<std::string>& command = rank_command());

}  // namespace stretto::cli
