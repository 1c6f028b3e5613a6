#pragma once

#include <string>

#include <torch/nn/module.h>

#include "stretto/tensor/state.h"

namespace stretto::parallel {

// The state of torch's default CPU generator on this rank, which shuffling, initialisation and torch's
// dropout use. (Dropout of stretto's layers does not use it.)

std::string random_state();
void set_random_state(const std::string& state);

// Reseeds the generator on every rank but 0 from the common state and the rank, so that ranks draw different
// numbers.
void separate_random_numbers(int rank);

// Whether the module contains a torch layer with dropout.
bool has_torch_dropout(const torch::nn::Module& module);

// The generator's state in the state table: one entry "random.<rank>" for each rank that saves, or saved, the
// table.
class RandomState {
 public:
  // `rank`: of this process; `ranks`: the number of ranks that save the table together.
  RandomState(int rank, int ranks) : rank_(rank), ranks_(ranks) {}

  // The entry refers to memory of this object.
  void add_state(State& state);
  // Call it after the table was filled. A rank without an entry (fewer ranks saved the table) keeps its
  // state.
  void resume(const State& state) const;

 private:
  int rank_;
  int ranks_;
  Tensor bytes_;
};

}  // namespace stretto::parallel
