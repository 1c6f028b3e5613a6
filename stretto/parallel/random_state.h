#pragma once

#include <string>

#include <torch/nn/module.h>

#include "stretto/tensor/state.h"

namespace stretto {
class Mesh;
}

namespace stretto::parallel {

// The state of torch's default CPU generator on this rank, which shuffling, initialisation and torch's
// dropout use. (Dropout of stretto's layers does not use it.)

std::string random_state();
void set_random_state(const std::string& state);

// Reseeds the generator by the position along Axes::sum, so that ranks with other samples draw different
// numbers. Ranks with parts of the same layers draw equal ones: from the state of the first of them. Position
// 0 keeps the numbers of a single rank. Collective along Axis::tp.
void separate_random_numbers(const Mesh& mesh);

// Whether the module contains a torch layer with dropout.
bool has_torch_dropout(const torch::nn::Module& module);

// The generator's state in the state table: one entry "random.<position>" for each position along Axes::sum
// that saves, or saved, the table; ranks with parts of the same layers have it in common. Ranks that compute
// on GPUs also have "random.cuda.<position>": seed and offset of the GPU's generator. Earlier tables list the
// states by rank; on such a mesh, ranks restore that of the first rank of their layers.
class RandomState {
 public:
  // `device`: that of this rank. Collective along Axis::tp.
  RandomState(const Mesh& mesh, at::Device device);

  // The entries refer to memory of this object.
  void add_state(State& state);
  // Call it after the table was filled. A position without an entry (fewer saved the table, or on another
  // device) keeps its state.
  void resume(const State& state) const;

 private:
  void add_entries(State& state, const std::string& name, const Tensor& values, bool saves) const;
  int own_entry(const State& state, const std::string& name) const;

  int position_, positions_;  // along Axes::sum
  int ranks_, first_rank_;    // of the world; the first rank with parts of this rank's layers
  bool saves_;                // whether this rank's state is that of the position
  at::Device device_;
  Tensor bytes_;
  Tensor of_gpu_;  // [2] int64: seed and offset
};

}  // namespace stretto::parallel
