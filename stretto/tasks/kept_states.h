#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stretto/comm/mesh.h"
#include "stretto/config/tasks/token_classification.h"
#include "stretto/models/text_model.h"

namespace stretto::tasks {

// The frozen states of the words of a dataset's samples (FrozenStates), computed when a sample is first used.
// The states of each sample are computed separately: the rounding of a matrix product depends on its number
// of rows, so that in a batch of several samples they would depend on the others, and a result on whether
// states are kept.
class KeptStates {
 public:
  // `storage`: none keeps nothing; cpu in the host's memory, once for the ranks of the job where they share
  // memory, else once per rank; gpu on `device`. `words`: of each sample. `dtype`: of the states, of which a
  // word has `width`. Memory is reserved for those of all words, and used as far as they are computed.
  // Collective; throws what allocation throws.
  KeptStates(StateStorage storage, std::span<const int32_t> words, int64_t width, at::ScalarType dtype,
             const Mesh& mesh, at::Device device);

  // Adds frozen_states to a batch of the dataset.
  void add_to(Batch& batch, const FrozenStates& model, const nn::Context& context);

  int64_t bytes() const { return static_cast<int64_t>(states_.defined() ? states_.nbytes() : 0); }

 private:
  std::vector<int64_t> begins_;  // of each sample's words, and their number
  Tensor states_;                // [words, width]; undefined: nothing is kept
  Tensor known_;                 // [samples] int64 on the CPU: 1 where the states exist
};

}  // namespace stretto::tasks
