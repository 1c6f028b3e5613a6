#pragma once

#include <string>

#include "stretto/base/tensor_layout.h"
#include "stretto/tensor/state.h"

namespace stretto::optim {

// What this rank owns of one parameter.
struct ParameterPiece {
  std::string name;
  TensorLayout layout;  // of what this rank has of the parameter, under any strategy
  int64_t first = 0;    // row-major element of that at which the piece begins
  int64_t begin = 0;    // elements [begin, end) of the buffers
  int64_t end = 0;
  bool weight_decay = true;  // whether the optimizer's weight_decay applies
  double lr_factor = 1;      // times the step's learning rate
  int64_t row_width =
      0;                 // above 0: a table of rows so wide, of which a step may have gradients for some only
  Holders holders = {};  // the ranks that own this same piece
};

// The entry of state with one element for each of the piece's.
Entry piece_entry(std::string name, const ParameterPiece& piece, const Tensor& data);

}  // namespace stretto::optim
