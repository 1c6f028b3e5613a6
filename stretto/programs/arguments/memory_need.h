#pragma once

#include "stretto/config/check_recipe.h"

namespace stretto::arguments {

// A lower bound of the memory per rank, in bytes: libtorch, weights, gradients and optimizer state as sharded by the
// strategy over `ranks`, and the texts of the data files. Excludes activations, which depend on the batch, and files
// that cannot be read.
double memory_per_rank(const Recipe& recipe, Verb verb, int ranks);

// Memory of a rank that has loaded libtorch and nothing else, in bytes.
double library_memory();

// Throws ConfigError if `ranks` ranks of at least `per_rank` bytes each do not fit into `available` bytes; the message
// contains the number that does.
void require_memory(int ranks, double per_rank, double available);

// Throws ConfigError if `ranks` ranks do not fit into `available` bytes; the message contains the number that does.
void require_memory(const Recipe& recipe, Verb verb, int ranks, double available);

}  // namespace stretto::arguments
