#pragma once

#include <optional>

#include "stretto/config/recipe.h"
#include "stretto/data/dataset.h"
#include "stretto/parallel/matmul_libraries.h"

namespace stretto {

// Chooses the libraries of the matrix products of `module` in `precision`, as training.products and training.kernels say,
// for micro-batches of `samples` samples per rank. Nothing on devices other than the CPU. Collective.
std::optional<MatmulLibraries> choose_matmul_libraries(const Recipe& recipe, const torch::nn::Module& module,
                                                       const data::Dataset& dataset, int64_t samples,
                                                       Precision precision, Group& group, at::Device device);

}  // namespace stretto
