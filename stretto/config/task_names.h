#pragma once

#include <string>
#include <vector>

#include "stretto/config/recipe.h"

namespace stretto {

// The values of a recipe's `task`, the default first. Each must have an entry in tasks/registry.cpp.
const std::vector<std::string>& task_names();

// The metric that checkpoint.monitor defaults to for this task and its settings; "accuracy" for tasks of programs.
std::string default_monitor(const Recipe& recipe);

}  // namespace stretto
