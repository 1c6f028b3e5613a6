#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/comm/group.h"
#include "stretto/parallel/arena.h"
#include "stretto/parallel/reducer.h"
#include "stretto/parallel/sharding.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/tensor/state.h"

namespace stretto {

struct EngineOptions {
  std::string strategy = "ddp";  // a row of sharding.h
  Precision precision = Precision::fp32;
  double bucket_bytes = 25 * 1024 * 1024;   // the largest piece of gradients reduced at once
  std::vector<ParameterGroup> groups = {};  // settings of parameters by name
  // Tables that declare it are reduced and stepped by the rows in use, where strategy and optimizer can. Off: whoever
  // reads weights between steps needs no catch_up().
  bool lazy_rows = true;
};

// Bytes per rank of what the engine holds for the trainable parameters.
struct EngineMemory {
  int64_t master = 0;
  int64_t gradients = 0;
  int64_t compute = 0;  // 0 where the model computes with the master weights
  int64_t optimizer = 0;
  int64_t total() const { return master + gradients + compute + optimizer; }
};

// What stands between a module and its training on several ranks: the module's tensors, their memory (arena), the
// reduction of gradients, norm and clipping, the optimizer's step, and the state of all of these. Trainer and Lite are two
// drivers of it; the strategy is a row of a table that it reads. Every rank of `group` makes the same calls in the same
// order. Not thread-safe.
//
//   engine.backward(loss.sum, /*last_micro_batch=*/true);   gradients of all ranks are summed meanwhile
//   engine.finish_reduction(totals);                        loss and count over all ranks
//   engine.step(rates, 1 / count);                          scales, updates, zeroes the gradients
class Engine {
 public:
  // Binds the module's parameters to an arena and gives every rank rank 0's parameters and buffers. The module must not be
  // moved or given further parameters afterwards. Without an optimizer, whoever calls steps the parameters. Collective.
  // Throws ConfigError for parameters that cannot be trained, and where `optimizer` cannot step what the strategy gives
  // each rank.
  Engine(torch::nn::Module& module, Group& group, const EngineOptions& options,
         std::unique_ptr<optim::Optimizer> optimizer);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- backward: reducer.h has the contracts

  void backward(const Tensor& loss_sum, bool last_micro_batch) {
    reducer_.backward(loss_sum, last_micro_batch);
  }
  void finish_reduction(std::span<double> totals = {}) { reducer_.finish(totals); }
  Reducer& reducer() { return reducer_; }

  // --- gradients, after finish_reduction()

  // L2 norm over all trainable parameters, the same on all ranks.
  double gradient_norm() const;
  // The first parameter whose gradient holds NaN or infinity, or "".
  std::string first_nonfinite() const { return reducer_.first_nonfinite(); }
  void scale_gradients(double factor);
  void clamp_gradients(double limit);  // each element to [-limit, limit]
  void zero_gradients() { reducer_.zero_gradients(); }

  // --- the step

  // Updates the parameters with gradients multiplied by `grad_scale`, zeroes the gradients, and gathers what other ranks
  // have stepped. Collective where the strategy shards. REQUIRES: an optimizer.
  void step(const optim::StepRates& rates, double grad_scale);
  // Counts a step that is not taken; its gradients are zeroed.
  void skip_step();
  optim::Optimizer* optimizer() { return optimizer_.get(); }  // null: none was given
  int64_t steps_done() const { return optimizer_->steps_done(); }

  // Brings lazily stepped rows up to date: before anybody but the layers that look rows up reads them. add_model_state(),
  // weights() and compare_replicas() do it themselves.
  void catch_up();

  // Throws Error by name when a parameter or its gradient was replaced.
  void verify() const { arena_.verify(); }

  // --- replicas

  // Throws DistributedError naming a rank whose parameters differ from rank 0's in any bit. Collective.
  void compare_replicas();
  // Every rank gets rank 0's buffers (running statistics of norms, ...). Collective.
  void synchronise_buffers();
  bool buffers_changed() const;  // on this rank, since they were last the same on all ranks

  // --- state

  // Adds entries "<prefix>.<parameter>" for parameters at master precision, frozen parameters and buffers, which refer to
  // living memory. The optimizer adds its own: optim::Optimizer::add_state(). Collective: buffers become rank 0's.
  void add_model_state(State& state, const std::string& prefix = "model");
  // After the entries have been written by checkpoint::load. Collective.
  void resume_model();

  // Parameters at master precision, frozen parameters and buffers, by name: what a model file holds. Views of living memory
  // where they are not gathered. Collective.
  NamedTensors weights();

  // --- facts

  const ModuleTensors& tensors() const { return tensors_; }
  Arena& arena() { return arena_; }
  const Arena& arena() const { return arena_; }
  const Sharding& sharding() const { return sharding_; }
  Precision precision() const { return options_.precision; }
  EngineMemory memory() const;
  // The lines that a run prints at its start: sizes, types, memory. `title` begins the first ("model"); `compute` names the
  // dtype of computation.
  std::string describe(const std::string& title, const std::string& compute) const;

 private:
  void gather_shards(const Tensor& whole) const;
  void zero_gradients_of_others();
  std::vector<int64_t> buffer_versions() const;

  const EngineOptions options_;
  const Sharding sharding_;
  Group& group_;
  ModuleTensors tensors_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Arena arena_;
  Reducer reducer_;
  std::vector<int64_t> synchronised_versions_;  // of the buffers, when they were last the same on all ranks
};

// What gradients of this norm are to be multiplied by so that it is at most `max_norm`, as torch's clip_grad_norm_ does it:
// the limit over the norm plus 1e-6, or 1 where the norm is within it. max_norm 0: no limit.
double clip_scale(double norm, double max_norm);

}  // namespace stretto
