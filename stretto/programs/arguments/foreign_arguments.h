#pragma once

#include <CLI/CLI.hpp>

#include "stretto/compat/foreign.h"
#include "stretto/programs/arguments/launch_arguments.h"

namespace stretto::arguments {

// Adds --deepspeed, --accelerate and --parameters (--params), which `stretto launch` takes as well.
void add_foreign_arguments(CLI::App& verb, compat::ForeignFiles& files);

// Logs the ignored keys of the files, and uses their numbers of ranks and hosts, their rendezvous address and
// their list of GPUs where the command line gives none. Call it once per job, before ranks are started.
// Throws ConfigError if both give a number and the numbers differ, and for a file that is for mpirun.
void apply_foreign_launch(const compat::ForeignConfig& foreign, LaunchArguments& launch);

}  // namespace stretto::arguments
