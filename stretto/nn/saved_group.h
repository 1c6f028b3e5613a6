#pragma once

#include <torch/csrc/autograd/custom_function.h>

namespace stretto {
class Group;
}

namespace stretto::nn {

// Keeps the ranks of a divided layer, or null, for the backward pass of an autograd function.
inline void save_group(torch::autograd::AutogradContext* context, Group* ranks) {
  context->saved_data["ranks"] = static_cast<int64_t>(reinterpret_cast<intptr_t>(ranks));
}

inline Group* saved_group(const torch::autograd::AutogradContext& context) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an IValue holds no pointer
  return reinterpret_cast<Group*>(context.saved_data.at("ranks").toInt());
}

}  // namespace stretto::nn
