#pragma once

#include <functional>
#include <vector>

#include <torch/csrc/autograd/function.h>

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// What one block of a model passes to the next: hidden states [T, H]; of encoder-decoders also the encoder's.
using Carry = std::vector<Tensor>;

// Activation checkpointing (Chen et al. 2016): computes forward(carry) without keeping the activations that
// its backward needs, and computes it again in backward. `parameters` are those that `forward` uses: the
// data-parallel engine expects their gradients from here. `forward` must not itself call
// activation_checkpoint. torch's random state is restored for the second forward; stretto's dropout needs no
// state.
Tensor activation_checkpoint(const std::function<Tensor(const Carry&)>& forward, const Carry& carry,
                             const std::vector<Tensor>& parameters);

// The parameters given to the activation_checkpoint whose autograd node is `node`; null for other nodes.
const std::vector<Tensor>* recomputed_parameters(torch::autograd::Node& node);

}  // namespace stretto::nn
