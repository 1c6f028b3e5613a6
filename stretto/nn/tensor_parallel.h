#pragma once

#include <cstdint>

#include "stretto/tensor/tensor.h"

namespace stretto {
class Group;
struct Range;
}  // namespace stretto

namespace stretto::nn {

// Tensor parallelism (Shoeybi et al. 2019): layers are divided among ranks, which run the same passes on the
// same batches, in the same order. Tensors between such layers are equal on all of these ranks, bit for bit.

// The ranks among which the layers of a model are divided.
struct TensorParallel {
  Group* ranks = nullptr;  // null: layers are whole

  bool divides() const { return size() > 1; }
  int size() const;
  int position() const;  // of this rank
  // The part of `units` units that the rank at `of` has: consecutive ones; the first ranks may have one more.
  Range part(int64_t units, int of) const;
  Range part(int64_t units) const;
};

// x itself, of any shape and equal on all ranks, of which each computes a part of a layer: the gradient of
// x is the sum of the ranks' gradients. Backward is collective.
Tensor to_parts(const Tensor& x, Group& ranks);

// The sum of the ranks' x, which have one shape; it is equal on all ranks. The gradient of each x is that of
// the sum. Forward is collective.
Tensor sum_of_parts(const Tensor& x, Group& ranks);

// The columns of all ranks side by side, [T, columns], equal on all of them. REQUIRES: x are the columns of
// ranks.part(columns). The gradient of each x is its part of the result's. Forward is collective.
Tensor join_columns(const Tensor& x, int64_t columns, const TensorParallel& ranks);

}  // namespace stretto::nn
