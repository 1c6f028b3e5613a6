#pragma once

#include <cstdint>
#include <string>

#include "stretto/tensor/batch.h"

namespace stretto {

namespace parallel {
class Engine;
}
namespace trainer {
class MicroBatchRunner;
class OptimizerSet;
class TrainingRun;
struct Session;
}  // namespace trainer
struct Recipe;
struct State;
struct TrainingConfig;

// Lets training_step of a Module with automatic_optimization() == false call backward and step the optimizers
// in OptimizerPlan::several. Every rank must make the same calls in the same order, the same number of times
// per batch:
//
//   ManualOptimization& manual = context.manual();
//   manual.backward(loss_of_discriminator(...));
//   manual.step("discriminator");
//   manual.backward(loss_of_generator(...));
//   manual.step("generator");
class ManualOptimization {
 public:
  // Throws ConfigError for settings with which manual optimization cannot be combined. `optimizers` is that
  // of `engine`.
  ManualOptimization(const Recipe& recipe, parallel::Engine& engine, trainer::OptimizerSet& optimizers,
                     int64_t grad_accumulation_steps, int64_t total_steps);

  // Adds the gradients of a loss, given as a sum and a count, to those since the last step. The gradients of
  // all optimizers' parameters are computed; a step uses those of its own parameters and then zeroes all.
  // Throws Error like a loss of training_step.
  void backward(const Loss& loss);

  // Sums the gradients over the ranks, divides by the sum of the counts, clips them by training.max_grad_norm
  // and max_grad_value, and steps the optimizer by its schedule. Returns the norm before clipping, the same
  // on all ranks. Throws Error if the loss or the gradients are not finite, or if backward was not called
  // since the last step. Collective.
  double step(const std::string& optimizer);

  // The learning rate of the optimizer's next step, and its number of steps so far.
  double lr(const std::string& optimizer) const;
  int64_t steps_done(const std::string& optimizer) const;

 private:
  friend class trainer::MicroBatchRunner;
  friend struct trainer::Session;
  friend class trainer::TrainingRun;
  // `idle`: this rank has no samples; the batch is a substitute and does not count.
  void begin_batch(bool idle);
  void end_batch();
  void add_state(State& state) const;
  void resume(const State& state);
  void set_total_steps(int64_t total_steps);
  std::string describe() const;
  int64_t batches_done() const { return batches_done_; }

  const TrainingConfig& training_;
  parallel::Engine& engine_;
  trainer::OptimizerSet& optimizers_;
  bool idle_ = false;
  double loss_ = 0, count_ = 0;  // of this rank since the last step
  int64_t backwards_ = 0;        // since the last step
  int64_t steps_ = 0;            // of this batch, by any optimizer
  double norm_ = 0;              // gradient norm of the batch's first step
  int64_t batches_done_ = 0;
};

// Throws ShapeError or Error unless `loss` is one element that requires grad, and a count that is finite and
// not negative.
void require_loss(const Loss& loss);

}  // namespace stretto
