#pragma once

#include "stretto/model_config/rope.h"
#include "stretto/nn/rotary.h"

namespace stretto {

// The rotary positions of a model.
class Rope {
 public:
  // `width`: the number of columns of a head that are rotated.
  Rope(const RopeParameters& parameters, int64_t width) : parameters_(parameters), width_(width) {}

  // The angles at the rows of `layout`, for heads of dtype `dtype`. If frequencies depend on the length of a
  // text (dynamic, longrope), it is the length of the row's sequence up to the last of its rows, including
  // rows in a cache.
  nn::Rotation at(const nn::PackedLayout& layout, at::ScalarType dtype) const;

  // Radians per position, [width / 2] fp32, in a sequence of `length` tokens.
  Tensor frequencies(int64_t length) const;

 private:
  RopeParameters parameters_;
  int64_t width_;
};

}  // namespace stretto
