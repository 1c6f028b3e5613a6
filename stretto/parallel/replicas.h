#pragma once

#include <cstdint>
#include <optional>

#include "stretto/comm/group.h"
#include "stretto/parallel/parameters.h"
#include "stretto/tensor/state.h"

namespace stretto {

// Keeping what every rank of a group holds equal on all of them.

// Every rank gets `source`'s values; small tensors of one dtype travel together. All ranks pass the same shapes in the same
// order. Collective.
void broadcast_tensors(Group& group, const NamedTensorList& tensors, int source = 0);

// Hash of a tensor's bytes.
uint64_t checksum(const Tensor& tensor);

// The first rank whose checksum is not rank 0's. Collective.
std::optional<size_t> first_divergent_rank(Group& group, uint64_t checksum);

// Adds, without pieces, the entries that other ranks' tables have and this rank's lacks, so that all ranks describe the same
// tensors whoever holds what of them. Collective.
void add_entries_of_others(Group& group, State& state);

}  // namespace stretto
