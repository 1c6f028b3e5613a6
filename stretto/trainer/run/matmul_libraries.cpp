#include "stretto/trainer/run/matmul_libraries.h"

#include <algorithm>

#include "stretto/comm/mesh.h"

namespace stretto::trainer {

namespace {

// Measurements of another run may choose another library.
Products chosen_products(const TrainingConfig& training) {
  const bool measures = training.products == Products::automatic;
  return training.deterministic && measures ? Products::aten : Products(training.products);
}

}  // namespace

std::optional<parallel::MatmulLibraries> choose_matmul_libraries(const Recipe& recipe,
                                                                 const torch::nn::Module& module,
                                                                 const data::Dataset& dataset,
                                                                 int64_t samples, Precision precision,
                                                                 const Mesh& mesh, at::Device device) {
  if (!device.is_cpu()) return std::nullopt;
  const int64_t mean = dataset.total_length() / std::max<int64_t>(1, dataset.size());
  return parallel::MatmulLibraries(
      module,
      {.requested = chosen_products(recipe.training),
       .dtype = parallel::matmul_type(precision),
       .rows = recipe.training.max_tokens.value_or(std::max<int64_t>(1, mean * samples)),
       .cache = recipe.data.cache.value_or(recipe.output / "cache"),
       .reference = recipe.training.kernels == KernelChoice::reference,
       .names = {{"requested", "training.products"}, {"reference", "training.kernels: reference"}}},
      mesh.group(Axes::stage));
}

}  // namespace stretto::trainer
