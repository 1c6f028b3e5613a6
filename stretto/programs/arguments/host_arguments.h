#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "stretto/launch/hosts/host_options.h"
#include "stretto/launch/hosts/join_order.h"

namespace stretto::arguments {

// Options for a job on several hosts, shared by `stretto launch` and the verbs that train.
struct HostArguments {
  int nodes = 0;  // 0: not given
  std::optional<int> node_rank;
  std::string master_addr;  // empty: not given
  int master_port = 0;      // 0: not given
  std::string rendezvous;   // torchrun's HOST[:PORT]; empty: not given
  std::string run_id = "none";
  std::string secret_file;
  bool encrypt = false;
  double join_timeout = 300;         // seconds
  double host_timeout = 3;           // seconds
  std::string interface;             // empty: not given
  std::string hosts, hostfile, rsh;  // empty: not given
  // The order of the launcher that started this one; it replaces the options.
  std::optional<launch::JoinOrder> order = std::nullopt;
};

// Adds --nodes, --node-rank, --master-addr, --master-port, --secret-file, --encrypt, --join-timeout and
// --host-timeout to a verb, with torchrun's spellings (--nnodes, --node_rank, --rdzv-endpoint, ...), and
// --hosts, --hostfile and --rsh.
void add_host_arguments(CLI::App& verb, HostArguments& arguments);

// Converts the arguments to the launcher's options, completed from NODE_RANK, MASTER_ADDR, MASTER_PORT,
// STRETTO_SECRET, STRETTO_SECRET_FILE and STRETTO_ENCRYPT. Throws ConfigError for missing and contradictory
// values.
launch::HostOptions host_options(const HostArguments& arguments);

}  // namespace stretto::arguments
