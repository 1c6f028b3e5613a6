#pragma once

#include <concepts>
#include <functional>
#include <vector>

#include <torch/serialize/archive.h>

#include "stretto/tensor/tensor.h"

namespace torch::optim {
class OptimizerParamGroup;
}

namespace stretto::lite {
class OptimizerBackend;
}

namespace stretto {

// An optimizer returned by Lite::setup: a copyable handle, valid for the lifetime of the Lite.
class LiteOptimizer {
 public:
  explicit LiteOptimizer(lite::OptimizerBackend& backend) : backend_(&backend) {}

  // Zeroes the gradients. stretto's own optimizers also do so after each step.
  void zero_grad();

  // One optimizer step. Returns false if it was skipped, in precision fp16, because a gradient of the model
  // overflowed; a schedule should not advance then. Throws Error if there are no gradients, or if they were
  // accumulated under no_backward_sync and not reduced over ranks.
  bool step();

  // A step of an optimizer that evaluates the loss itself (torch::optim::LBFGS): `closure` zeroes gradients,
  // calls Lite::backward and returns the loss, a scalar. The optimizer sees the mean loss over all ranks,
  // which is returned.
  Tensor step(const std::function<Tensor()>& closure);

  double lr() const;
  void set_lr(double lr);  // for all parameters

  // The groups of torch's optimizers. Throws Error for stretto's optimizers, which have a single learning
  // rate.
  std::vector<torch::optim::OptimizerParamGroup>& param_groups();

 private:
  lite::OptimizerBackend* backend_;
};

// torch::save and torch::load of an optimizer are deleted: its state may be divided among the ranks, and
// every rank would write the file.
template <class Archive>
requires std::derived_from<Archive, torch::serialize::OutputArchive> Archive& operator<<(
    Archive& archive, const LiteOptimizer&) {
  static_assert(
      !std::same_as<Archive, Archive>,
      "torch::save of a LiteOptimizer is not supported: call lite.save(folder, {.step = step}) on every rank, which saves the state of all ranks, models and optimizers");
  return archive;
}
template <class Archive>
requires std::derived_from<Archive, torch::serialize::InputArchive> Archive& operator>>(Archive& archive,
                                                                                        LiteOptimizer&) {
  static_assert(
      !std::same_as<Archive, Archive>,
      "torch::load of a LiteOptimizer is not supported: call lite.load(folder) on every rank, which loads what lite.save has saved");
  return archive;
}

}  // namespace stretto
