#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "stretto/tensor/tensor.h"

// What the encoders share whose layers' states another model reads (heads::hidden_states).
namespace stretto {

// The states of `layers` side by side: [T, layers * H]. states[i] [T, H]: that of layer i.
Tensor side_by_side(const std::vector<Tensor>& states, const std::vector<int64_t>& layers);

// Layers behind the last one of `layers` (numbered as by layer_numbers) take no part: their parameters, whose
// names in `model` have `prefix` and their index from 0, need no gradient.
void freeze_layers_behind(torch::nn::Module& model, const std::string& prefix,
                          const std::vector<int64_t>& layers);

}  // namespace stretto
