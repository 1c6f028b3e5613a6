#pragma once

#include <filesystem>
#include <vector>

#include "stretto/config/recipe.h"

namespace stretto {

// An element of data.mixture.
struct MixturePart {
  std::filesystem::path path;  // a text file or a corpus
  double weight;               // above 0
};

// data.mixture, which may be empty. Throws ConfigError for weights that are not positive numbers and paths
// that occur twice.
std::vector<MixturePart> mixture_of(const Recipe& recipe);

}  // namespace stretto
