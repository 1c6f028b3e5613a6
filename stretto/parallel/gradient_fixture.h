#pragma once

#include <algorithm>

#include <torch/nn/module.h>

namespace stretto::parallel {

// The largest absolute value in the gradients that the module's parameters have on this rank; 0 without any.
inline double largest_gradient(const torch::nn::Module& module) {
  double largest = 0;
  for (const at::Tensor& parameter : module.parameters()) {
    if (parameter.grad().defined()) largest = std::max(largest, parameter.grad().abs().max().item<double>());
  }
  return largest;
}

}  // namespace stretto::parallel
