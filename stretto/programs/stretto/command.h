#pragma once

namespace stretto::cli {

// Runs `stretto ARGUMENTS`; returns the exit code.
int run_command(int argc, char** argv);

}  // namespace stretto::cli
