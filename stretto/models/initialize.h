#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/module.h>

namespace stretto {

// Initialises the parameters `names` of a model as Hugging Face's BERT family: normal(0, std), a function of
// the seed, the name and the element (nn/initial_values.h); biases are zero, weights of norms one, row
// `padding_row` of the table named `table` is zero.
void initialize_parameters(torch::nn::Module& model, uint64_t seed, const std::vector<std::string>& names,
                           double std, const std::string& table, int64_t padding_row);

}  // namespace stretto
