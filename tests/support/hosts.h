#pragma once

#include <optional>
#include <string>

namespace stretto {

// Why tests can make no hosts of their own on this system; nothing where they can. See hosts.sh.
std::optional<std::string> why_no_hosts();

// A shell command that runs `command` as `ranks_per_host` ranks on each of `hosts` hosts, all with torchrun's variables, and
// ends with the first exit code that is not 0. Rank 0 is on the first host, where the ranks meet.
std::string on_hosts(int hosts, int ranks_per_host, const std::string& command);

}  // namespace stretto
