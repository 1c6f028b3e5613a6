#pragma once

#include <map>
#include <optional>
#include <string>

#include "stretto/cluster/socket.h"

namespace stretto::launch {

// What the first launcher of a job writes to the standard input of a launcher that it starts on another host, where no command
// line and no list of processes shows it. The standard input stays open as long as the first launcher lives.
struct JoinOrder {
  int nodes = 0;
  int node_rank = 0;
  int ranks = 0;  // on that host; 0: its default
  cluster::Endpoint master = {};
  std::string secret = {};
  std::map<std::string, std::string> environment = {};
};

// One line with its end.
std::string encode(const JoinOrder& order);

// The command for a shell on the other host that starts this program there: with the same arguments, in the same folder.
std::string join_command();

// Those variables of this process that the job's other launchers and ranks get: settings of libraries and of stretto, without
// secrets.
std::map<std::string, std::string> shared_environment();

// The order for this process, if another launcher has started it: reads it from standard input and sets its environment. Throws
// ConfigError where standard input holds none.
std::optional<JoinOrder> read_join_order();

}  // namespace stretto::launch
