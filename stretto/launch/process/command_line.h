#pragma once

#include <string>
#include <vector>

namespace stretto::launch {

// The command line of this process, the program's name first. Throws IoError where /proc cannot be read.
std::vector<std::string> command_line();

// That with the program's file in place of its name: what starts the same program again, from any folder.
std::vector<std::string> own_command();

}  // namespace stretto::launch
