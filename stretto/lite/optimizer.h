#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include "stretto/lite/model.h"
#include "stretto/optim/optim.h"
#include "stretto/tensor/state.h"

namespace stretto::lite {

// The implementation behind a LiteOptimizer: stretto's optimizer, owned by the engine, or any torch::optim::Optimizer.
class OptimizerBackend {
 public:
  virtual ~OptimizerBackend() = default;
  virtual void zero_grad() = 0;
  virtual void step() = 0;
  virtual Tensor step(const std::function<Tensor()>& closure) = 0;
  virtual double lr() const = 0;
  virtual void set_lr(double lr) = 0;
  virtual std::vector<torch::optim::OptimizerParamGroup>& param_groups() = 0;
  // Adds the optimizer state under `prefix`; tensors refer to live memory. torch creates state in the first step only:
  // before loading, state is created here for the names in the checkpoint (`stored`, null for saving).
  using Names = std::set<std::string>;
  virtual void add_state(State& state, const std::string& prefix, const Names* stored) = 0;
  virtual void resume(const State& state, const std::string& prefix) = 0;
};

// The optimizer of the model's engine.
std::unique_ptr<OptimizerBackend> engine_optimizer(Model& model);

// Wraps a torch optimizer, which the caller may own. Throws ConfigError if it steps a tensor that is not a parameter of
// the model.
std::unique_ptr<OptimizerBackend> torch_optimizer(Model& model,
                                                  std::shared_ptr<torch::optim::Optimizer> optimizer);

}  // namespace stretto::lite

namespace stretto {

// An optimizer returned by Lite::setup: a copyable handle, valid while the Lite lives.
class LiteOptimizer {
 public:
  explicit LiteOptimizer(lite::OptimizerBackend& backend) : backend_(&backend) {}

  // Zeroes the gradients. stretto's own optimizers also do so after each step.
  void zero_grad() { backend_->zero_grad(); }

  // One optimizer step. Throws Error if there are no gradients, or if they were accumulated under no_backward_sync and
  // not reduced over ranks.
  void step() { backend_->step(); }

  // For optimizers that evaluate the loss themselves (torch::optim::LBFGS): `closure` zeroes gradients, calls
  // Lite::backward and returns the loss. The optimizer sees the mean loss over all ranks.
  Tensor step(const std::function<Tensor()>& closure) { return backend_->step(closure); }

  double lr() const { return backend_->lr(); }
  void set_lr(double lr) { backend_->set_lr(lr); }  // for all parameters

  // For torch's optimizers only. Throws Error for stretto's, which have a single learning rate.
  std::vector<torch::optim::OptimizerParamGroup>& param_groups() { return backend_->param_groups(); }

 private:
  lite::OptimizerBackend* backend_;
};

// What torch::save and torch::load of an optimizer call. Its state may be divided among the ranks, and every
// rank would write the file.
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
