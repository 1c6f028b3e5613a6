#pragma once

#include <string>

#include "stretto/trainer/api/module.h"

namespace stretto::trainer {

// Prepares the teachers of `module` for a run, as described at Module::teacher(). Throws ConfigError if one
// shares a parameter with the model. Collective.
void place_teachers(const Module& module, at::Device device, Precision precision, const Mesh& mesh);

// A line per teacher for the start of a run; empty if there are none.
std::string describe_teachers(const Module& module);

}  // namespace stretto::trainer
