#pragma once

#include <string>

#include <torch/nn/module.h>

namespace stretto::nn {

// The kinds of layers that own parameters of a module. Each member is the path of one such layer; empty if
// there is none.
struct LayerKinds {
  std::string own;    // a layer of stretto::nn, which computes in the dtype of its parameters
  std::string other;  // any other module, such as torch's layers
};
LayerKinds layer_kinds(const torch::nn::Module& module);

}  // namespace stretto::nn
