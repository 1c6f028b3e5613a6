#pragma once

namespace stretto::cli {

// Parses the command line, runs its verb and returns the exit code. In a file of its own, because main.cpp is
// compiled without the layer's precompiled header.
int run_command(int argc, char** argv);

}  // namespace stretto::cli
