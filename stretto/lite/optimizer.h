#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include <torch/optim/optimizer.h>

#include "stretto/lite/model.h"
#include "stretto/optim/optim.h"
#include "stretto/tensor/state.h"

namespace stretto::lite {

// What stands behind an optimizer that was set up: one of stretto's, which the engine keeps, or any
// torch::optim::Optimizer.
class OptimizerBackend {
 public:
  virtual ~OptimizerBackend() = default;
  virtual void zero_grad() = 0;
  virtual void step() = 0;
  virtual Tensor step(const std::function<Tensor()>& closure) = 0;
  virtual double lr() const = 0;
  virtual void set_lr(double lr) = 0;
  virtual std::vector<torch::optim::OptimizerParamGroup>& param_groups() = 0;
  // Adds its state under `prefix`; tensors refer to living memory. torch makes state with the first step only: what the
  // checkpoint that is to be loaded holds by these names (`stored`, null for saving) is made here.
  using Names = std::set<std::string>;
  virtual void add_state(State& state, const std::string& prefix, const Names* stored) = 0;
  virtual void resume(const State& state, const std::string& prefix) = 0;
};

// The optimizer of the model's engine.
std::unique_ptr<OptimizerBackend> engine_optimizer(Model& model);

// Keeps a torch optimizer, which may be the caller's own. Throws ConfigError where it steps a tensor that is no
// parameter of the model.
std::unique_ptr<OptimizerBackend> torch_optimizer(Model& model,
                                                  std::shared_ptr<torch::optim::Optimizer> optimizer);

}  // namespace stretto::lite

namespace stretto {

// An optimizer as Lite::setup returns it; a handle, to be copied freely while the Lite lives.
class LiteOptimizer {
 public:
  explicit LiteOptimizer(lite::OptimizerBackend& backend) : backend_(&backend) {}

  // Gradients become zeros. stretto's own optimizers leave them so after each step.
  void zero_grad() { backend_->zero_grad(); }

  // One step with the gradients of the last backward. Throws Error where there are none, or where they were accumulated
  // under no_backward_sync and are not yet those of all ranks.
  void step() { backend_->step(); }

  // For optimizers that evaluate the loss themselves (torch::optim::LBFGS): `closure` zeroes gradients, calls
  // Lite::backward and returns the loss. What the optimizer sees of it is the mean over all ranks.
  Tensor step(const std::function<Tensor()>& closure) { return backend_->step(closure); }

  double lr() const { return backend_->lr(); }
  void set_lr(double lr) { backend_->set_lr(lr); }  // of all parameters

  // Of torch's optimizers. Throws Error for stretto's, which have one learning rate.
  std::vector<torch::optim::OptimizerParamGroup>& param_groups() { return backend_->param_groups(); }

 private:
  lite::OptimizerBackend* backend_;
};

}  // namespace stretto
