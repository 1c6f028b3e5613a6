#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "stretto/parallel/engine.h"

namespace stretto::lite {

// The name of the state of a model or optimizer: "model" for the first, "model1" for the second. A program
// with one model names its tensors as `stretto train` does.
std::string numbered(const char* what, size_t number);

// What the sums of gradients are divided by.
struct Divisors {
  double count = 0;  // of losses that are sums, over all ranks; unused for means
  double scale = 1;  // the loss scale
};

struct ModelOptions {
  parallel::EngineOptions engine;
  bool skips_unused = false;  // its optimizers skip parameters without a gradient (torch::optim)
};

// A module that was set up: its engine, and the state of its gradients between backward calls. After a
// synchronising backward, `parameter.grad()` is the mean over the global batch, as on one rank.
class Model {
 public:
  // Broadcasts the first rank's parameters and buffers. `number` counts the models of the
  // program. `optimizer` may be null. Collective.
  Model(size_t number, torch::nn::Module& module, const Mesh& mesh, const ModelOptions& options,
        std::unique_ptr<optim::Optimizer> optimizer);

  size_t number() const { return number_; }
  // The number of the engine's optimizer among those of the program, by which its state is named.
  void set_optimizer_number(size_t number);
  const torch::nn::Module& module() const { return module_; }
  // Throws ConfigError, prefixed with `what`, if the model has no trainable parameters.
  parallel::Engine& engine(const std::string& what) const;
  parallel::Engine* engine() const { return engine_.get(); }  // null without trainable parameters
  const parallel::ModuleTensors& tensors() const { return engine_ ? engine_->facts().tensors : frozen_; }
  bool holds(const Tensor& tensor) const;  // whether it is a trainable parameter

  // --- one backward, in this order

  // Whether `loss` depends on this model. If so, prepares its gradients: dropped ones become zeros. Throws
  // Error naming a parameter that is no longer in the arena. Appends leaves of the graph that are not this
  // model's to `others`.
  bool takes_part(const Tensor& loss, std::vector<Tensor>& others);
  // Accumulates the next gradients with those since the last synchronising backward. `count`: the divisor of
  // a loss that is a sum; nullopt for a mean.
  void extend_window(std::optional<double> count);
  void begin_backward(bool synchronises);
  void end_backward(bool synchronises);
  void abort_backward();  // call after an exception: zeroes the gradients
  // Completes a synchronising backward. `loss`: the global mean.
  void finish(const Divisors& divisors, bool has_unused, double loss);

  // Whether there are gradients since the last synchronising backward.
  bool accumulates() const { return window_.open; }
  // The sum of counts since the last synchronising backward.
  double window_count() const { return window_.count.value_or(0); }
  bool has_unused() const;

  // --- between backwards

  // Whether a gradient is NaN or infinite, which fp16 allows. Collective.
  bool overflowed() const;
  bool is_clean() const { return !window_.open && !reduced_; }  // gradients are zeros
  double last_loss() const { return last_loss_; }
  void zero_grad();
  void zero_grad(const std::set<size_t>& parameters);  // by index in tensors().trainable
  // Throws if there are no gradients, or if they are not reduced yet.
  void require_gradients(const std::string& what) const;
  void gradients_were_zeroed();  // call when an optimizer has zeroed them

  // The lines printed at setup; `compute` names the compute dtype.
  std::string describe(const std::string& compute) const;

  // --- state, also without trainable parameters

  Holders holders() const;          // all ranks, for what is equal on them
  void add_state(State& state);     // Engine::add_state()
  void resume(const State& state);  // Engine::resume(); zeroes the gradients, which belong to earlier weights
  void compare_replicas();          // Engine::compare_replicas()

  bool buffers_changed() const { return engine_ && engine_->buffers_changed(); }
  void synchronise_buffers();  // broadcasts rank 0's

 private:
  struct Window {
    bool open = false;            // contains gradients that were not reduced
    std::optional<double> count;  // of sums; nullopt for means
    uint64_t fingerprint = 0;     // of the parameters after its last backward
  };
  void drop_unused();

  size_t number_;
  torch::nn::Module& module_;
  std::shared_ptr<torch::nn::Module> kept_;  // keeps module_ alive if a shared_ptr owns it
  const Mesh& mesh_;
  ModelOptions options_;
  parallel::StateNames names_;
  parallel::ModuleTensors frozen_;  // used if there is no engine
  std::unique_ptr<parallel::Engine> engine_;
  parallel::GradientUses uses_;  // by the current loss
  std::optional<parallel::Backward> pass_;
  std::vector<uint8_t> used_;  // since gradients were last zeroed
  Window window_;
  bool reduced_ = false;  // the buffer contains a gradient that is the same on all ranks
  double last_loss_ = 0;
  Tensor held_;  // the reduced gradient, kept while the next one is accumulated
};

}  // namespace stretto::lite
