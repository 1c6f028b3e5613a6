#pragma once

#include "stretto/base/range.h"
#include "stretto/nn/activation_checkpoint.h"
#include "stretto/nn/packed.h"

namespace stretto {

// A model as consecutive blocks with a carry of tensors from each to the next, so that any range of them is a
// part of the model.
class Staged {
 public:
  virtual ~Staged() = default;

  virtual int64_t blocks() const = 0;

  // Runs the blocks `range`. `carry`: the output of the block before them for the rows of `batch`, or for
  // this rank's of them if ranks divide rows (nn/tensor_parallel.h); empty for block 0. Returns the output of
  // the last block.
  virtual nn::Carry run(const Range& range, nn::Carry carry, const Batch& batch,
                        const nn::Context& context) const = 0;
};

}  // namespace stretto
