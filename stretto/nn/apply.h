#pragma once

#include <utility>

#include <torch/csrc/autograd/custom_function.h>

namespace stretto::nn {

// F::apply(arguments...). Where gradients are off it makes no node of autograd's graph, which takes as long
// as the function itself for the few rows of a step of generation.
template <class F, class... Arguments>
auto apply(Arguments&&... arguments) {
  if (at::GradMode::is_enabled()) return F::apply(std::forward<Arguments>(arguments)...);
  torch::autograd::AutogradContext unused;
  return F::forward(&unused, std::forward<Arguments>(arguments)...);
}

}  // namespace stretto::nn
