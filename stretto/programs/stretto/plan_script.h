#pragma once

#include "stretto/programs/arguments/plan_arguments.h"

namespace stretto::cli {

// Prints what a job script of NeuronxDistributed needs: memory, time and messages of a step by the formulae
// of strategy/decoder_cost.h. Throws ConfigError for what cannot be read or arranged, DataError and IoError
// for its files.
void plan_script(const arguments::PlanArguments& arguments);

}  // namespace stretto::cli
