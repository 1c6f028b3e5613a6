#pragma once

namespace stretto::rank {

// What `stretto-rank ARGUMENTS` does; returns the exit code.
int run_command(int argc, char** argv);

}  // namespace stretto::rank
