#pragma once

#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "stretto/nn/packed.h"

namespace stretto::nn {

// The rows of packed sequences in the order in which recurrent layers read them: the first rows of all
// sequences, longest sequence first, then their second rows, and so on (torch's PackedSequence).
struct StepOrder {
  // cu_seqlens [B + 1], as in PackedLayout; sequences may be empty.
  explicit StepOrder(const Tensor& cu_seqlens);

  Tensor rows;  // [rows of all sequences] int64
  // [longest sequence] int64 on the CPU: the number of sequences with at least that many rows
  Tensor batch_sizes;
  Tensor sequences;   // [sequences that are not empty] int64, longest first
  int64_t count = 0;  // B
};

struct RecurrentOptions {
  enum class Cell { lstm, gru };
  Cell cell = Cell::lstm;
  int64_t input = 0;
  int64_t hidden = 0;  // size per direction
  int64_t layers = 1;
  bool bidirectional = true;
  double dropout = 0;       // between two layers
  uint64_t first_site = 0;  // the first of layers - 1 dropout sites
};

// LSTM (Hochreiter and Schmidhuber 1997; with torch's two biases) or GRU (Cho et al. 2014, torch's form) over
// packed sequences, without padding. Parameters have torch.nn.LSTM's names and shapes: weight_ih_l0, ...,
// bias_hh_l0_reverse.
class Recurrent : public torch::nn::Module {
 public:
  explicit Recurrent(const RecurrentOptions& options);

  // x [T, input], the rows of `layout` -> [T, width()]; 0 in rows after the last sequence.
  Tensor forward(const Tensor& x, const PackedLayout& layout, const Context& context) const;

  // The states of the last layer after the last row of each sequence, and of the backward direction after the
  // first row: [B, width()]; 0 for an empty sequence. x [N, input]. REQUIRES: one layer.
  Tensor last_states(const Tensor& x, const Tensor& cu_seqlens) const;

  int64_t width() const { return options_.hidden * directions(); }
  const RecurrentOptions& options() const { return options_; }

 private:
  struct States {
    Tensor rows, last;
  };
  int64_t directions() const { return options_.bidirectional ? 2 : 1; }
  States run(int64_t layer, const Tensor& steps, const StepOrder& order) const;

  RecurrentOptions options_;
  std::vector<std::vector<Tensor>> parameters_of_layer_;
};

}  // namespace stretto::nn
