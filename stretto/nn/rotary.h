#pragma once

#include "stretto/nn/packed.h"

namespace stretto::nn {

// The angles by which the heads of each row are turned, as cosines and sines [T, R / 2] in fp32 (fp64 of fp64
// models); undefined: rows are not turned.
struct Rotation {
  Tensor cosines = {}, sines = {};
};

// Rotary position embedding (Su et al. 2021): of each head of x [T, heads, D] the columns i and R / 2 + i are
// turned by the angle i of the row, for i < R / 2. Columns from R on stay.
Tensor rotate(const Tensor& x, const Rotation& rotation, const Context& context);

}  // namespace stretto::nn
