#pragma once

#include <string>
#include <vector>

namespace stretto::launch {

// The command line of this process, the program's name first. Throws IoError if /proc cannot be read.
std::vector<std::string> command_line();

// The command line with the program's path instead of its name, so that it starts the program again from any
// folder.
std::vector<std::string> own_command();

}  // namespace stretto::launch
