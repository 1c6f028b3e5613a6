#pragma once

#include <string>

#include <torch/nn/module.h>

#include "stretto/base/tensor_layout.h"
#include "stretto/tensor/tensor_source.h"

namespace stretto::nn {

// Set the values of a module's parameters from a source that has tensors of the same names. They throw
// DataError if a tensor of the source has another shape.

// Sets the values of one parameter as fill_parameters() (initial_values.h).
void fill_parameter(const std::string& name, const Tensor& parameter, const TensorLayout& layout,
                    const TensorSource& source);

// Frees the memory of the parameters and moves them to `device` without values: a single element stands for
// all of them until the source is read.
void drop_values(torch::nn::Module& module, const TensorSource& source, at::Device device);

}  // namespace stretto::nn
