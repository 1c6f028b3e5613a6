#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "stretto/parallel/engine.h"

namespace stretto::lite {

struct ModelOptions {
  EngineOptions engine;
  bool skips_unused = false;  // its optimizers pass over parameters without a gradient (torch::optim)
};

// A module that was set up: an engine, and what its gradients stand for between two calls of backward. After one that
// synchronises, `parameter.grad()` is the mean over the global batch, as it would be on one rank.
class Model {
 public:
  // Collective: gives every rank rank 0's parameters and buffers. `number` counts the models of the program. `optimizer`
  // may be null.
  Model(size_t number, torch::nn::Module& module, Group& group, const ModelOptions& options,
        std::unique_ptr<optim::Optimizer> optimizer);

  size_t number() const { return number_; }
  const torch::nn::Module& module() const { return module_; }
  // Throws ConfigError that begins with `what` where the model has no trainable parameter.
  Engine& engine(const std::string& what) const;
  Engine* engine() const { return engine_.get(); }  // null where nothing is trainable
  const ModuleTensors& tensors() const { return engine_ ? engine_->tensors() : frozen_; }
  bool holds(const Tensor& tensor) const { return engine_ && engine_->reducer().holds(tensor); }

  // --- one backward, in this order

  // Whether `loss` depends on this model. Then its gradients are made ready: dropped ones are zeros again; a parameter
  // that has left the arena is refused by name. Leaves of the graph that are not this model's are added to `others`.
  bool takes_part(const Tensor& loss, std::vector<Tensor>& others);
  // The gradients to come belong with those since the last backward that synchronised. `count`: what the loss, a sum, is
  // to be divided by; nothing where it is a mean.
  void extend_window(std::optional<double> count);
  void begin_backward(bool synchronises) {
    engine_->reducer().begin_backward(std::move(uses_), synchronises);
  }
  void end_backward(bool synchronises);
  void abort_backward();  // after an exception: the gradients are zeros
  // After a backward that synchronises: `count` is the divisor of all ranks' sums, `loss` the global mean.
  void finish(double count, bool has_unused, double loss);

  // Of the backwards since the last one that synchronised.
  double window_count() const { return window_.count.value_or(0); }
  bool has_unused() const;

  // --- between backwards

  bool is_clean() const { return !window_.open && !reduced_; }  // gradients are zeros
  double last_loss() const { return last_loss_; }
  void zero_grad();
  void zero_grad(const std::set<size_t>& parameters);  // of these, by their index in the arena
  // Throws where gradients are missing, or were not yet synchronised.
  void require_gradients(const std::string& what) const;
  void gradients_were_zeroed();  // by an optimizer

  // The lines that a run prints at its start; `compute` names the dtype of computation.
  std::string describe(const std::string& compute) const;

  // --- buffers, also of a model without trainable parameters

  bool buffers_changed() const { return engine_ && engine_->buffers_changed(); }
  void synchronise_buffers();  // every rank gets rank 0's

 private:
  struct Window {
    bool open = false;            // holds gradients that were not reduced
    std::optional<double> count;  // of sums; nothing for means
    uint64_t fingerprint = 0;     // of the parameters after its last backward
  };
  uint64_t fingerprint() const;
  void drop_unused();

  size_t number_;
  torch::nn::Module& module_;
  std::shared_ptr<torch::nn::Module>
      kept_;  // the same, where it is somebody's shared_ptr: it must outlive this
  Group& group_;
  ModelOptions options_;
  ModuleTensors frozen_;  // where there is no engine
  std::unique_ptr<Engine> engine_;
  std::vector<int> uses_;      // by the loss at hand
  std::vector<uint8_t> used_;  // since gradients were last zeroed
  Window window_;
  bool reduced_ = false;  // the buffer holds a gradient that is the same on all ranks
  double last_loss_ = 0;
  Tensor held_;  // such a gradient, put aside while another one is added up
};

}  // namespace stretto::lite
