#pragma once

#include <cstdint>
#include <set>
#include <string>

#include <torch/nn/module.h>

#include "stretto/tensor/state.h"

namespace stretto {

// torch's default CPU generator, which shuffles, initialises and drops, on each rank. (Dropout of stretto's own layers does
// not use it.)

std::string random_state();
void set_random_state(const std::string& state);

// Gives every rank but the first random numbers of its own, derived from the state that rank 0 and it have in common.
void separate_random_numbers(int rank);

// Whether the module holds a layer of torch's that drops at random.
bool has_torch_dropout(const torch::nn::Module& module);

// The generator's state in the state table: an entry "random.<rank>" for each rank that wrote.
class RandomState {
 public:
  // `writers`: ranks that write, or wrote, the table; rank `rank` is this one. The entry refers to memory of this object.
  void add_state(State& state, int rank, int writers);
  // After the table was loaded: a rank that has no entry (there were fewer ranks) keeps its numbers.
  void resume(int rank) const;

  // How many ranks wrote their state into a table with entries of these names: 0 where it has none.
  static int writers(const std::set<std::string>& names);

 private:
  Tensor bytes_;
  int writers_ = 0;
};

}  // namespace stretto
