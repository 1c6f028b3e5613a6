#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "stretto/tensor/tensor.h"

// Common parts of encoders whose layers' states another model reads (heads::hidden_states).
namespace stretto {

// The states of `layers` side by side: [T, layers * H]. states[i]: the states of layer i, [T, H].
Tensor side_by_side(const std::vector<Tensor>& states, const std::vector<int64_t>& layers);

// Disables gradients of the layers after the last one of `layers` (numbered as by layer_numbers): their
// parameters, whose names in `model` have `prefix` and their index from 0, need no gradient.
void freeze_layers_after(torch::nn::Module& model, const std::string& prefix,
                         const std::vector<int64_t>& layers);

}  // namespace stretto
