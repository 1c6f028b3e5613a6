#pragma once

#include <optional>

#include "stretto/config/recipe.h"
#include "stretto/data/dataset.h"
#include "stretto/parallel/matmul_libraries.h"

namespace stretto::trainer {

// Chooses the libraries for the matmuls of `module` in `precision` according to training.products and
// training.kernels, for micro-batches of `samples` samples per rank. The choice is the same on ranks that
// compute the same layers. Returns nullopt for devices other than the CPU. Collective.
std::optional<parallel::MatmulLibraries> choose_matmul_libraries(const Recipe& recipe,
                                                                 const torch::nn::Module& module,
                                                                 const data::Dataset& dataset,
                                                                 int64_t samples, Precision precision,
                                                                 const Mesh& mesh, at::Device device);

}  // namespace stretto::trainer
