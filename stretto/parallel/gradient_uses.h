#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "stretto/tensor/tensor.h"

namespace stretto::parallel {

// How often a backward from `root` will add to each parameter's gradient: once if the parameter is in the
// graph, once more for each block with activation checkpointing that uses it, 0 if it is unused. `index_of`
// maps a parameter's TensorImpl to its index in the result, which has `count` elements. Leaves of the graph
// that are not in `index_of` are appended to `others` unless it is null. `check` is called for each node that
// computes a gradient of one of the parameters.
using CheckUse = std::function<void(size_t parameter, const torch::autograd::Node& user)>;
std::vector<int> count_gradient_uses(const Tensor& root,
                                     const std::unordered_map<const c10::TensorImpl*, size_t>& index_of,
                                     size_t count, std::vector<Tensor>* others = nullptr,
                                     const CheckUse& check = {});

}  // namespace stretto::parallel
