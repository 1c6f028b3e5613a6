#pragma once

#include <map>
#include <optional>
#include <string>

#include "stretto/cluster/socket.h"

namespace stretto::launch {

// The order that the first launcher of a job writes to the standard input of a launcher that it starts on
// another host, so that no command line and no list of processes shows the secret. The standard input stays
// open for the lifetime of the first launcher.
struct JoinOrder {
  int nodes = 0;
  int node_rank = 0;
  int ranks = 0;  // on that host; 0: its default
  cluster::Endpoint master = {};
  std::string secret = {};
  std::map<std::string, std::string> environment = {};
};

// One line, including its newline.
std::string encode(const JoinOrder& order);

// The shell command that starts this program on another host with the same arguments in the same folder.
std::string join_command();

// The environment variables of this process that the job's other launchers and ranks get: settings of
// libraries and of stretto, without secrets.
std::map<std::string, std::string> shared_environment();

// Reads the order for this process from standard input, if another launcher has started it, and sets its
// environment; otherwise returns nullopt. Throws ConfigError if standard input has no order.
std::optional<JoinOrder> read_join_order();

}  // namespace stretto::launch
