#pragma once

#include <functional>
#include <vector>

#include <torch/csrc/autograd/function.h>

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// The tensors that one block of a model passes to the next: hidden states [T, H], for encoder-decoders also
// those of the encoder.
using Carry = std::vector<Tensor>;

// Activation checkpointing (Chen et al. 2016): computes forward(carry) without keeping the activations that
// its backward needs, and recomputes it in backward. `parameters`: those that `forward` uses; the engine
// expects their gradients from this node. `forward` must not itself call activation_checkpoint. torch's
// random state is restored for the second forward; stretto's dropout needs no state.
Tensor activation_checkpoint(const std::function<Tensor(const Carry&)>& forward, const Carry& carry,
                             const std::vector<Tensor>& parameters);

// The parameters given to the activation_checkpoint whose autograd node is `node`; null for other nodes.
const std::vector<Tensor>* recomputed_parameters(torch::autograd::Node& node);

}  // namespace stretto::nn
