#pragma once

#include <string>
#include <vector>

namespace stretto::cli {

// The command line of this process with the program replaced by stretto-rank, which links libtorch and does the verbs
// that compute. It is looked for beside this program, in ../libexec/stretto. Throws ConfigError when it is not there.
std::vector<std::string> rank_command();

// Becomes that program. Returns only by throwing IoError.
[[noreturn]] void become_rank_program();

}  // namespace stretto::cli
