#pragma once

#include "stretto/config/recipe.h"
#include "stretto/strategy/memory.h"

namespace stretto::arguments {

// A lower bound of the memory per rank, in bytes: libtorch; weights, gradients and optimizer state, sharded
// by the strategy over the ranks of the job; and the texts of the data files. Excludes activations, which
// depend on the batch, unreadable files, and models of families that are not bundled.
double memory_per_rank(const Recipe& recipe, Verb verb, const JobShape& job);

// The memory of a rank that has only loaded libtorch, in bytes.
double library_memory();

// Throws ConfigError if `ranks` ranks of at least `per_rank` bytes each do not fit into `available` bytes;
// the message contains the number of ranks that do.
void require_memory(int ranks, double per_rank, double available);

// Throws ConfigError if the ranks of this host do not fit into its `available` bytes; the message contains
// the number that does.
void require_memory(const Recipe& recipe, Verb verb, const JobShape& job, double available);

}  // namespace stretto::arguments
