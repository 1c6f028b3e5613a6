#pragma once

#include <functional>
#include <vector>

#include <torch/csrc/autograd/function.h>

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

using Block = std::function<Tensor(const Tensor&)>;

// Activation checkpointing (Chen et al. 2016): runs block(x) without keeping what its backward needs, and runs it again
// in backward. `parameters` are those the block uses; they tell the data-parallel engine that their gradients come from
// inside this block. A block may not hold another checkpoint. torch's random state is restored for the second run;
// stretto's dropout needs no state.
Tensor checkpoint(const Block& block, const Tensor& x, const std::vector<Tensor>& parameters);

// The parameters of the checkpointed block that `node` recomputes, or null when it is another kind of node.
const std::vector<Tensor>* recomputed_parameters(torch::autograd::Node& node);

}  // namespace stretto::nn
