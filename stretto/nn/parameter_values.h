#pragma once

#include <string>

#include <torch/nn/module.h>

#include "stretto/base/tensor_layout.h"
#include "stretto/tensor/tensor_source.h"

namespace stretto::nn {

// The values of a module's parameters that a source has, under their names in the module, where no engine
// gives them memory. All throw DataError where the source's tensor has another shape.

// Reads them into the parameters, which keep their dtype and device. A parameter that is whole here shares
// the source's memory, if that has its dtype and device.
void fill_parameters(torch::nn::Module& module, const TensorSource& source);

// The same of one parameter.
void fill_parameter(const std::string& name, const Tensor& parameter, const TensorLayout& layout,
                    const TensorSource& source);

// Frees their memory, and moves the parameters to `device` without values: one element stands for all until
// the source is read.
void drop_values(torch::nn::Module& module, const TensorSource& source, at::Device device);

}  // namespace stretto::nn
