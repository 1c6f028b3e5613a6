#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>

#include "stretto/lite/model.h"
#include "stretto/parallel/loss_scale.h"
#include "stretto/tensor/state.h"

namespace stretto::lite {

// The implementation of a LiteOptimizer: stretto's optimizer, owned by the engine, or any
// torch::optim::Optimizer.
class OptimizerBackend {
 public:
  virtual ~OptimizerBackend() = default;
  virtual void zero_grad() = 0;
  virtual bool step() = 0;  // false: it was skipped, because the gradients overflowed
  virtual Tensor step(const std::function<Tensor()>& closure) = 0;
  virtual double lr() const = 0;
  virtual void set_lr(double lr) = 0;
  virtual std::vector<torch::optim::OptimizerParamGroup>& param_groups() = 0;
  // Adds the optimizer state under `prefix`; tensors refer to live memory. torch creates state in the first
  // step only: for a table that a source fills, memory is allocated here for the tensors of the source.
  virtual void add_state(State& state, const std::string& prefix) = 0;
  virtual void resume(const State& state, const std::string& prefix) = 0;
};

// The optimizer of the model's engine. Both kinds skip steps whose gradients overflowed, if `scale` is in
// use, and update it after each step.
std::unique_ptr<OptimizerBackend> engine_optimizer(Model& model, parallel::LossScale& scale);

// Wraps a torch optimizer, which the caller may own. Throws ConfigError if it steps a tensor that is not a
// parameter of the model.
std::unique_ptr<OptimizerBackend> torch_optimizer(Model& model,
                                                  std::shared_ptr<torch::optim::Optimizer> optimizer,
                                                  parallel::LossScale& scale);

}  // namespace stretto::lite
