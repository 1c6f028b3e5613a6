#pragma once

#include "stretto/compat/hf_script.h"

namespace stretto::cli {

// Writes the two parts of plan.split_file, if there is one: its first plan.split_percentage percent of lines
// as the validation file, as datasets' split "train[:5%]" rounds, the others as the training file. Files that
// hold this already stay as they are. Throws ConfigError where a part would be empty, IoError.
void split_lines(const compat::ScriptPlan& plan);

}  // namespace stretto::cli
