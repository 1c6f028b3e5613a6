#pragma once

#include <span>

#include "stretto/optim/optimizer.h"
#include "stretto/optim/parameter_piece.h"

// Optimizers of tensors that are divided among ranks (tensor parallelism): each rank steps its part, and what
// a rule computes of the whole tensor is summed over the ranks or joined.
namespace stretto::optim {

// The ranks among which tensors are divided (TensorLayout::cuts), each with a part of every such tensor. All
// of them make the same calls, in the same order; results are equal on all of them.
class TensorParts {
 public:
  virtual ~TensorParts() = default;
  virtual int position() const = 0;                  // of this rank
  virtual void sum(const Tensor& values) const = 0;  // in place
  virtual double largest(double value) const = 0;
  // The global tensor of `layout` from the local one of each rank.
  virtual Tensor whole(const TensorLayout& layout, const Tensor& local) const = 0;
};

// Base of optimizers that step such tensors although their placement() is not Placement::flat. Pieces of them
// are as large as placement() requires of the local tensors.
class StepsParts {
 protected:
  virtual ~StepsParts() = default;
};

// Whether the optimizer can step tensors that are divided among ranks.
bool steps_parts(const Optimizer& optimizer);

// Whether this rank counts the piece in sums over all ranks: it has the first copy of the piece.
bool counts(const ParameterPiece& piece);

// Sums `values` over the parts of the piece's tensor, in place, without further copies of parts; does nothing
// if it is whole. Collective over the ranks with parts.
void sum_over_parts(const ParameterPiece& piece, std::span<double> values);
// Like above, if the tensor is cut along `axis`.
void sum_over_parts_along(int axis, const ParameterPiece& piece, const Tensor& values);

// The elements of a whole tensor that a rank with this layout has.
Tensor local_part(const TensorLayout& layout, const Tensor& whole);

}  // namespace stretto::optim
