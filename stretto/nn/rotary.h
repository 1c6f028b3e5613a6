#pragma once

#include "stretto/nn/packed.h"

namespace stretto::nn {

// The angles by which the heads of each row are rotated, as cosines and sines [T, R / 2] in fp32 (fp64 for
// fp64 models); undefined: no rotation.
struct Rotation {
  Tensor cosines = {}, sines = {};
};

// Rotary position embedding (Su et al. 2021): in each head of x [T, heads, D], the columns i and R / 2 + i
// are rotated by the row's angle i, for i < R / 2. The columns from R on are unchanged.
Tensor rotate(const Tensor& x, const Rotation& rotation, const Context& context);

}  // namespace stretto::nn
