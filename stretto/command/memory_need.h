#pragma once

#include "stretto/config/check_recipe.h"

namespace stretto::command {

// Bytes that a rank of this run needs at least, by the sizes of the model and of the data files: libtorch's own memory,
// weights, gradients and optimizer state as the strategy divides them over `ranks`, and the texts. Activations, which
// depend on the batch, are not counted. Files that cannot be read count for nothing here; who reads them reports that.
double memory_per_rank(const Recipe& recipe, Verb verb, int ranks);

// Throws ConfigError where `ranks` of them do not fit into `available` bytes; it names the number that does.
void require_memory(const Recipe& recipe, Verb verb, int ranks, double available);

}  // namespace stretto::command
