#include "stretto/tensor/batch.h"

#include "stretto/base/error.h"

namespace stretto {

const Tensor& Batch::at(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found != tensors.end()) return found->second;
  std::string names;
  for (const auto& [key, value] : tensors) names += (names.empty() ? "" : ", ") + key;
  throw DataError("the batch has no tensor \"{}\"; it holds: {}", name, names);
}

Batch Batch::to(at::Device device) const {
  Batch moved = *this;
  for (auto& [name, tensor] : moved.tensors) {
    // A copy from pinned memory is made while the GPU still computes the last step.
    const bool pinned = device.is_cuda() && tensor.is_cpu();
    tensor = pinned ? tensor.pin_memory().to(device, /*non_blocking=*/true) : tensor.to(device);
  }
  return moved;
}

Loss loss_of_mean(const Tensor& mean, int64_t count) { return {mean * count, static_cast<double>(count)}; }

}  // namespace stretto
