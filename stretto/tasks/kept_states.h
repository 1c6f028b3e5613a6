#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stretto/comm/mesh.h"
#include "stretto/config/tasks/token_classification.h"
#include "stretto/models/text_model.h"

namespace stretto::tasks {

// Stores the frozen states of the words of a dataset's samples (FrozenStates), which are computed when a
// sample is first used. The states of each sample are computed separately: the rounding of a matmul depends
// on its number of rows, so that in a batch of several samples states would depend on the other samples, and
// results on whether states are stored.
class KeptStates {
 public:
  // `storage`: none stores nothing; cpu stores in the host's memory, once for ranks of the job that share
  // memory, else once per rank; gpu on `device`. `words`: the number per sample. `dtype`: of the states,
  // which have `width` numbers per word. Memory is reserved for all words, and used as states are computed.
  // Collective; throws the exceptions of the allocation.
  KeptStates(StateStorage storage, std::span<const int32_t> words, int64_t width, at::ScalarType dtype,
             const Mesh& mesh, at::Device device);

  // Adds frozen_states to a batch of the dataset.
  void add_to(Batch& batch, const FrozenStates& model, const nn::Context& context);

  int64_t bytes() const { return static_cast<int64_t>(states_.defined() ? states_.nbytes() : 0); }

 private:
  std::vector<int64_t> begins_;  // of each sample's words, and their number
  Tensor states_;                // [words, width]; undefined: nothing is stored
  Tensor known_;                 // [samples] int64 on the CPU: 1 where the states exist
};

}  // namespace stretto::tasks
