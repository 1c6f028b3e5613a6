#pragma once

namespace stretto::cli {

// What `stretto ARGUMENTS` does; returns the exit code.
int run_command(int argc, char** argv);

}  // namespace stretto::cli
