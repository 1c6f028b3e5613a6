#pragma once

#include <cstdint>
#include <optional>

#include "stretto/comm/group.h"
#include "stretto/parallel/parameters.h"

namespace stretto::parallel {

// Broadcasts and comparisons of tensors that are replicated on all ranks of a group.

// Broadcasts `source`'s values; tensors of one dtype are joined into larger messages. All ranks pass the same
// shapes in the same order. Collective.
void broadcast_tensors(Group& group, const NamedTensorList& tensors, int source = 0);

// Hash of a tensor's bytes.
uint64_t checksum(const Tensor& tensor);

// The first rank of the group whose checksum differs from that of the first rank with the same `part`;
// nullopt if there is none. `part`: the part of the values that this rank holds, if ranks hold different
// ones. Collective.
struct DivergentRank {
  int rank, reference;  // in the job
};
std::optional<DivergentRank> first_divergent_rank(Group& group, uint64_t checksum, int part = 0);

}  // namespace stretto::parallel
