#pragma once

#include <string>

#include "stretto/base/tensor_layout.h"
#include "stretto/tensor/state.h"

namespace stretto::optim {

// The most elements of padding between two neighbouring parameters.
constexpr int64_t most_padding = 15;

class TensorParts;  // tensor_parts.h

// The part of one parameter that this rank owns.
struct ParameterPiece {
  std::string name;
  TensorLayout layout;  // the layout of the rank's local tensor, before sharding by a strategy
  int64_t first = 0;    // the row-major local element at which the piece begins
  int64_t begin = 0;    // elements [begin, end) of the buffers
  int64_t end = 0;
  bool weight_decay = true;  // whether the optimizer's weight_decay applies
  double lr_factor = 1;      // factor of the step's learning rate
  int64_t row_width =
      0;  // above 0: the width of a table's rows, of which a step may have gradients for some only
  bool is_hidden_matrix = false;       // a weight [R, C] of a layer, neither a table nor in the model's head
  Holders holders = {};                // the ranks that own the same piece
  Holders holders_of_whole = {};       // the ranks that own the same pieces of tensors that are not cut
  const TensorParts* parts = nullptr;  // null: no tensor is divided among ranks

  bool is_cut() const { return !layout.cuts.empty(); }
  bool is_cut_along(int axis) const;  // of the tensor; negative: from the end
};

// The entry of state with one element per element of the piece.
Entry piece_entry(std::string name, const ParameterPiece& piece, const Tensor& data);

}  // namespace stretto::optim
