#pragma once

#include <string>

#include "stretto/trainer/api/module.h"

namespace stretto {

// Makes the teachers of `module` ready for a run, as Module::teacher() says. Throws ConfigError if one shares
// a parameter with the model. Collective.
void place_teachers(const Module& module, at::Device device, Precision precision, const Mesh& mesh);

// A line per teacher for the start of a run; empty if there are none.
std::string describe_teachers(const Module& module);

}  // namespace stretto
