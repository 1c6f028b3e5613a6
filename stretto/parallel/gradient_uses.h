#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "stretto/tensor/tensor.h"

namespace stretto {

// How often each parameter's gradient will be added to in a backward from `root`: once where the graph holds it, once
// more in each checkpointed block that uses it, not at all where it is unused. `index_of` maps a parameter's TensorImpl
// to its place in the result, which has `count` places. Leaves of the graph that it does not hold are appended to
// `others`, where that is given. `check` is told of each node that computes a gradient of one of the parameters.
using CheckUse = std::function<void(size_t parameter, const torch::autograd::Node& user)>;
std::vector<int> count_gradient_uses(const Tensor& root,
                                     const std::unordered_map<const c10::TensorImpl*, size_t>& index_of,
                                     size_t count, std::vector<Tensor>* others = nullptr,
                                     const CheckUse& check = {});

}  // namespace stretto
