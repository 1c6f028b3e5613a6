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
// table. Ranks that compute on GPUs also have "random.cuda.<rank>": seed and offset of the GPU's generator.
class RandomState {
 public:
  // `rank`: of this process; `ranks`: the number of ranks that save the table together; `device`: that of
  // this rank.
  RandomState(int rank, int ranks, at::Device device) : rank_(rank), ranks_(ranks), device_(device) {}

  // The entries refer to memory of this object.
  void add_state(State& state);
  // Call it after the table was filled. A rank without an entry (fewer ranks saved the table, or on another
  // device) keeps its state.
  void resume(const State& state) const;

 private:
  void add_entries(State& state, const std::string& name, const Tensor& values, bool saves) const;

  int rank_;
  int ranks_;
  at::Device device_;
  Tensor bytes_;
  Tensor of_gpu_;  // [2] int64: seed and offset
};

}  // namespace stretto::parallel
