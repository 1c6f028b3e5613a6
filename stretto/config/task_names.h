#pragma once

#include <string>
#include <vector>

namespace stretto {

// What a recipe's `task` may be, the default first. Each is an entry of tasks/registry.cpp too.
const std::vector<std::string>& task_names();

}  // namespace stretto
