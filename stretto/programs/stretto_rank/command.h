#pragma once

namespace stretto::rank {

// Runs `stretto-rank ARGUMENTS`; returns the exit code.
int run_command(int argc, char** argv);

}  // namespace stretto::rank
