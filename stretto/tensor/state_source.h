#pragma once

#include <set>
#include <string>

#include "stretto/tensor/state.h"

namespace stretto {

// The source of a run's state, such as a checkpoint.
class StateSource {
 public:
  virtual ~StateSource() = default;

  // The names of its tensors.
  virtual std::set<std::string> tensors() const = 0;

  // Writes the source's tensors into the memory that `state` refers to, and its scalars over those of the
  // same names. Throws DataError if the tables of all ranks together do not have the same tensors as the
  // source. Collective.
  virtual void fill(State& state) = 0;
};

}  // namespace stretto
