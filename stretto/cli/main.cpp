#include "stretto/cli/command.h"

// The `stretto` command. It links no libtorch, so every verb that needs none answers in milliseconds.
int main(int argc, char** argv) { return stretto::cli::run_command(argc, argv); }
