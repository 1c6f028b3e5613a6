#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stretto/parallel/backward.h"
#include "stretto/parallel/engine_facts.h"
#include "stretto/parallel/engine_options.h"
#include "stretto/parallel/gradient_view.h"
#include "stretto/parallel/weight_view.h"
#include "stretto/tensor/state.h"

namespace stretto {
class Mesh;
class TensorSource;
}  // namespace stretto

namespace stretto::parallel {

struct WatchedLeaves;  // leaf_watch.h

// A step of the optimizer.
struct StepInput {
  optim::StepRates rates;
  double grad_scale = 1;  // multiplies the gradients: 1 / global count, clipping
  bool averages = true;   // updates the average of the weights; if false, call average_weights()
  // Used by optimizers that reevaluate() their batch: the mean loss that the gradients belong to, and a
  // function that repeats forward, backward and finish(), and zeroes nothing.
  double loss = 0;
  optim::Reevaluate again = {};
};

// Names of an engine's entries in the state table: "<model>.<parameter>", "<optimizer>.<state>.<parameter>".
struct StateNames {
  std::string model = "model";
  std::string optimizer = "optimizer";
};

// Trains a module on several ranks: owns the module's tensors, their memory (arena), gradient reduction, norm
// and clipping, the optimizer step, and the state of all of these. Trainer and Lite drive it; the strategy is
// a row of the table in sharding.h. Every rank must make the same calls in the same order. Not thread-safe.
//
//   engine.backward(loss.sum, Reduce::last);      gradients of all ranks are summed meanwhile
//   engine.finish(totals);                        loss and count over all ranks
//   engine.step({rates, 1 / count});              scales, updates, zeroes the gradients
class Engine {
 public:
  // Moves the module's parameters into an arena and gives them the same values on all ranks of Axes::sum: the
  // values in `values`, and rank 0's values in the module for parameters that `values` does not have. Buffers
  // get rank 0's values in the module. Each rank reads only the shard that it owns, a few parameters at a
  // time, so that a model that a strategy shards is never in memory as a whole. `mesh` must outlive the
  // engine. The module must not be moved or given further parameters afterwards. Without an optimizer, the
  // caller steps the parameters. Collective. Throws ConfigError for parameters that cannot be trained, and if
  // `optimizer` does not support the strategy's sharding.
  Engine(torch::nn::Module& module, const Mesh& mesh, const EngineOptions& options,
         std::unique_ptr<optim::Optimizer> optimizer, const TensorSource* values = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- backward: see backward.h

  // Counts how often a backward from `loss` uses each parameter; an undefined loss uses none. Leaves of its
  // graph that are not parameters of this engine are appended to `others`. Throws Error if a sparse table is
  // used other than by lookup.
  GradientUses uses(const Tensor& loss, std::vector<Tensor>* others = nullptr) const;
  // Throws Error inside another backward, and after one with Reduce::last until finish().
  [[nodiscard]] Backward open(GradientUses uses, Reduce reduce);
  // Opens, runs autograd from `loss_sum` and closes. An undefined loss (a rank without samples) only takes
  // part in the reductions.
  void backward(const Tensor& loss_sum, Reduce reduce);
  // Watches the graphs of backward() until take_leaves(), which returns what their losses depended on. Take
  // them when these graphs are gone.
  void watch_leaves();
  WatchedLeaves take_leaves();
  // Waits for the reductions of Reduce::last, and sums each of `totals` (loss, count, ...) over the ranks;
  // their number must be the same on all ranks.
  void finish(std::span<double> totals = {});
  GradientView gradients() { return GradientView(*parts_); }

  // --- the step

  // Throws Error naming a parameter that was replaced, or whose gradient was.
  void verify() const;
  // Updates the parameters, zeroes the gradients, and gathers the parameters stepped by other ranks unless
  // they are shared. Collective if the strategy shards. Throws like verify(). REQUIRES: an optimizer.
  void step(const StepInput& input);
  // Updates the average of the weights, if there is one. `step`: 1 is the first.
  void average_weights(int64_t step);
  // Counts a step without updating parameters; zeroes the gradients. Throws like verify().
  void skip_step();
  int64_t steps_done() const;  // REQUIRES: an optimizer

  // --- weights, buffers and their copies

  WeightView weights() { return WeightView(*parts_); }
  // Throws DistributedError naming a rank whose parameters differ from rank 0's in any bit. Collective.
  void compare_replicas();
  // Broadcasts rank 0's buffers (running statistics of norms, ...). Collective.
  void synchronise_buffers();
  bool buffers_changed() const;  // on this rank, since the last synchronise_buffers()

  // --- state

  // Adds entries for parameters at master precision, frozen parameters, buffers, the average of the weights
  // ("average") and the optimizer, which refer to live memory. Broadcasts rank 0's buffers. Collective.
  void add_state(State& state, const StateNames& names = {});
  // Call it after checkpoint::load has filled the entries. Collective. Throws ConfigError if the checkpoint's
  // optimizer is of another type.
  void resume(const State& state, const StateNames& names = {});

  const EngineFacts& facts() const;

 private:
  void follow_step(bool averages);

  std::unique_ptr<EngineParts> parts_;
};

}  // namespace stretto::parallel
