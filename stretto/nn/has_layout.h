#pragma once

#include <string>

#include <torch/nn/module.h>

namespace stretto {
struct TensorLayout;
}

namespace stretto::nn {

// A layer that has only parts of its parameters, such as a layer of a tensor-parallel rank.
class HasLayout {
 public:
  virtual ~HasLayout() = default;
  // The layout of the parameter that this layer registers under this name.
  virtual TensorLayout layout(const std::string& parameter) const = 0;
};

// The layout of the parameter `path` of a module, such as "encoder.0.weight": whole, unless the layer that
// registers it derives from HasLayout. Throws ConfigError if the layout does not match the parameter's shape.
TensorLayout layout_of(const torch::nn::Module& module, const std::string& path);

}  // namespace stretto::nn
