#pragma once

#include "stretto/comm/mesh.h"
#include "stretto/trainer/run/validation.h"

namespace stretto::trainer {

// Evaluates the snapshots that the run which has started this process sends over `socket`
// (evaluation_process.h), with `module`, until it closes the socket; then ends the process. Evaluations that
// fail are reported over the socket. `mesh`: of one rank. Throws ConfigError if `sets` are not those of the
// run.
[[noreturn]] void serve_evaluations(const Recipe& recipe, Module& module, const Mesh& mesh, at::Device device,
                                    const std::vector<ValidationSamples>& sets, int socket);

}  // namespace stretto::trainer
