#pragma once

#include <string>
#include <vector>

namespace stretto::launch {

// The command line of this process, the program's name first. Throws IoError if /proc cannot be read.
std::vector<std::string> command_line();

// The same with the path of the program's file in place of its name, which starts the program again from any folder.
std::vector<std::string> own_command();

}  // namespace stretto::launch
