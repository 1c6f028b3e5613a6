#pragma once

#include <optional>

#include <CLI/CLI.hpp>

#include "stretto/programs/arguments/host_arguments.h"

namespace stretto::launch {
struct LaunchOptions;
}

namespace stretto::arguments {

// Options for starting and supervising ranks, shared by `stretto launch` and the verbs that train.
struct LaunchArguments {
  int ranks = 0;  // ranks on this host; 0: not given
  bool no_pin = false;
  bool oversubscribe = false;  // start more ranks than fit into memory
  HostArguments hosts = {};
  int max_restarts = 0;
  double grace = 60;  // seconds
  int stop_exit_code = 0;
  double hang_timeout = 300;                                 // seconds
  std::optional<int64_t> collective_timeout = std::nullopt;  // seconds
};

// Adds -N, -n, --nproc-per-node and --nproc_per_node to a verb; "-N 2", "-N2" and "-N=2" are equivalent.
void add_ranks_option(CLI::App& verb, int& ranks, const std::string& description);

// Adds these options, --no-pin, --max-restarts (and torchrun's --max_restarts), --grace, --stop-exit-code,
// --hang-timeout and --collective-timeout to a verb, and the options for several hosts.
void add_launch_arguments(CLI::App& verb, LaunchArguments& arguments);

// Reads the order of the launcher that has started this one, if any (launch/hosts/join_order.h). Call it
// before the environment is read.
void join_job(LaunchArguments& arguments);

// Warns, in a rank that another launcher has started, if -N differs from that launcher's number of ranks.
void note_ranks_of_launcher(const LaunchArguments& arguments);

// Copies the arguments to the launcher's options. Throws ConfigError like host_options().
void apply(const LaunchArguments& arguments, launch::LaunchOptions& options);

}  // namespace stretto::arguments
