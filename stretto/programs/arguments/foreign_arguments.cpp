#include "stretto/programs/arguments/foreign_arguments.h"

#include <cstdlib>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/launch/process/command_line.h"
#include "stretto/programs/arguments/checks.h"

namespace stretto::arguments {
namespace {

// The command line takes precedence, except for the number of hosts, which must agree.
void apply_hosts(const compat::ForeignConfig::Hosts& foreign, HostArguments& hosts) {
  const int64_t nodes = hosts.nodes != 0 ? hosts.nodes : foreign.nodes.value_or(1);
  if (foreign.node_rank && *foreign.node_rank >= nodes) {
    throw ConfigError("{}: {}: the job has {}; expected a number from 0 to {}", foreign.node_rank_place,
                      *foreign.node_rank, counted(nodes, "host"), nodes - 1);
  }
  if (foreign.nodes.value_or(1) == 1) return;
  if (hosts.nodes != 0 && hosts.nodes != *foreign.nodes)
    throw ConfigError("{}: {} contradicts --nodes {}; remove one of them", foreign.place, *foreign.nodes,
                      hosts.nodes);
  hosts.nodes = static_cast<int>(*foreign.nodes);
  if (!hosts.node_rank && foreign.node_rank) hosts.node_rank = static_cast<int>(*foreign.node_rank);
  if (hosts.rendezvous.empty() && hosts.master_addr.empty())
    hosts.master_addr = foreign.master_addr.value_or("");
  if (hosts.rendezvous.empty() && hosts.master_port == 0)
    hosts.master_port = static_cast<int>(foreign.master_port.value_or(0));
}

// The ranks inherit the variable.
void apply_visible_devices(const compat::ForeignConfig& foreign) {
  constexpr const char* variable = "CUDA_VISIBLE_DEVICES";
  if (foreign.visible_devices.empty()) return;
  const char* set = std::getenv(variable);
  if (set != nullptr && foreign.visible_devices != set) {
    throw ConfigError("{}: \"{}\" contradicts {}=\"{}\" in the environment; remove one of them",
                      foreign.visible_devices_place, foreign.visible_devices, variable, set);
  }
  ::setenv(variable, foreign.visible_devices.c_str(), /*overwrite=*/1);
}

// The command that starts the job as the file intends.
std::string mpirun_command(const compat::ForeignConfig& foreign) {
  const int64_t ranks = foreign.ranks.value_or(1) * foreign.hosts.nodes.value_or(1);
  std::string command =
      fmt::format("mpirun -np {} --hostfile {}", ranks, shell_word(foreign.mpirun_hostfile));
  if (foreign.hosts.master_addr) command += " -x MASTER_ADDR=" + shell_word(*foreign.hosts.master_addr);
  for (const std::string& word : launch::command_line()) command += " " + shell_word(word);
  return command;
}

}  // namespace

void add_foreign_arguments(CLI::App& verb, compat::ForeignFiles& files) {
  verb.add_option("--deepspeed", files.deepspeed, "Settings from a DeepSpeed configuration, ds_config.json")
      ->type_name("FILE")
      ->check(a_name);
  verb.add_option("--accelerate", files.accelerate, "Settings from the file that `accelerate config` writes")
      ->type_name("FILE")
      ->check(a_name);
  verb.add_option("--parameters,--params", files.parameters,
                  "Settings from the parameters.yml of pytorch_universal_trainer")
      ->type_name("FILE")
      ->check(a_name);
}

void apply_foreign_launch(const compat::ForeignConfig& foreign, LaunchArguments& launch) {
  for (const std::string& warning : foreign.warnings) log::warning("{}", warning);
  for (const std::string& note : foreign.notes) log::info("{}", note);
  if (!foreign.mpirun_place.empty()) {
    throw ConfigError(
        "{}: this file is for mpirun; start {}, or remove this key and list the hosts with --hostfile",
        foreign.mpirun_place, mpirun_command(foreign));
  }
  apply_visible_devices(foreign);
  apply_hosts(foreign.hosts, launch.hosts);
  if (!foreign.ranks) return;
  const auto ranks = static_cast<int>(*foreign.ranks);
  if (launch.ranks == 0) launch.ranks = ranks;
  if (launch.ranks == ranks) return;
  throw ConfigError("{}: {} contradicts -N {}; remove one of them", foreign.ranks_place, ranks, launch.ranks);
}

}  // namespace stretto::arguments
