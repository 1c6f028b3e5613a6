#pragma once

#include <span>

#include "stretto/comm/group.h"
#include "stretto/parallel/arena.h"
#include "stretto/tensor/tensor_source.h"

namespace stretto::parallel {

// Gives a module's parameters the same initial values on all ranks of a group: those of rank 0. Each rank
// reads only the elements that it owns. Ranks with the same files or seed have the same values already, and
// comparing hashes is faster than broadcasting; to compare them, rank 0 also reads the elements of every
// other rank, one rank at a time.
class FirstValues {
 public:
  // `source`: the values of the parameters that it has; the other parameters, or all if it is null, have
  // their values in the module. Both must outlive this object.
  FirstValues(Group& group, const TensorSource* source) : group_(group), source_(source) {}

  // Reads what this rank holds of consecutive parameters, before they move into the arena. Collective, with
  // the same parameters on all ranks.
  void read(std::span<const HeldValues> held) const;

  // Sets the values of parameters that are whole on each rank. Collective.
  void fill(const NamedTensorList& parameters) const;

 private:
  void read_part(const HeldValues& part) const;
  uint64_t checksum_of(const HeldValues& local, const Range& elements) const;
  bool agree(std::span<const HeldValues> held) const;

  Group& group_;
  const TensorSource* source_;
};

}  // namespace stretto::parallel
