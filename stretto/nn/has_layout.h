#pragma once

#include <string>

#include <torch/nn/module.h>

#include "stretto/base/tensor_layout.h"

namespace stretto::nn {

// A layer that holds parts of its parameters, as a rank of a group that shares the work on it does.
class HasLayout {
 public:
  virtual ~HasLayout() = default;
  // Where the parameter that this layer registers under this name lies in its global tensor.
  virtual TensorLayout layout(const std::string& parameter) const = 0;
};

// The layout of the parameter `path` of a module, such as "encoder.0.weight": whole, unless the layer that
// registers it HasLayout. Throws ConfigError where that is not a layout of a tensor of its shape.
TensorLayout layout_of(const torch::nn::Module& module, const std::string& path);

}  // namespace stretto::nn
