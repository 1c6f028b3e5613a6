#include "stretto/tensor/finite.h"

#include <cmath>

#include <ATen/ops/aminmax.h>

namespace stretto {

// Minimum and maximum are finite if and only if all values are, because NaN propagates to them.
bool is_finite(const Tensor& tensor) {
  if (!tensor.is_floating_point() || tensor.numel() == 0) return true;
  const auto [least, largest] = at::aminmax(tensor.detach());
  return std::isfinite(least.item<double>()) && std::isfinite(largest.item<double>());
}

std::string first_nonfinite(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!is_finite(tensor)) return name;
  }
  return "";
}

}  // namespace stretto
