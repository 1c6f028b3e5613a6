#pragma once

#include <set>
#include <string>

#include "stretto/tensor/state.h"

namespace stretto {

// What a run takes its state from, such as a checkpoint.
class StateSource {
 public:
  virtual ~StateSource() = default;

  // The names of its tensors.
  virtual std::set<std::string> tensors() const = 0;

  // Writes its tensors into the memory that `state` refers to, and its scalars over those of the same names.
  // Throws DataError where the tables of all ranks together have other tensors than the source. Collective.
  virtual void fill(State& state) = 0;
};

}  // namespace stretto
