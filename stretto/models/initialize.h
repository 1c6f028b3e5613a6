#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/module.h>

namespace stretto {

// Initialises the parameters `names` of a model as Hugging Face's BERT family: normal(0, std), which depends on the seed and
// the name only; biases are zero, weights of norms one, row `padding_row` of the table named `table` is zero.
void initialize_parameters(torch::nn::Module& model, uint64_t seed, const std::vector<std::string>& names,
                           double std, const std::string& table, int64_t padding_row);

}  // namespace stretto
