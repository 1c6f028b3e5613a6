#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stretto/tensor/batch.h"

namespace stretto {

namespace parallel {
class Engine;
enum class Reduce : uint8_t;
}  // namespace parallel
namespace trainer {
class MicroBatchRunner;
class OptimizerSet;
struct RankCalls;
class TrainingRun;
class Turns;
struct Session;
}  // namespace trainer
class Group;
struct Recipe;
struct State;
struct TrainingConfig;

// Lets training_step of a Module with automatic_optimization() == false call backward and step the optimizers
// in OptimizerPlan::several. Every rank must make the same calls in the same order, the same number of times
// per micro-batch:
//
//   ManualOptimization& manual = context.manual();
//   manual.backward(loss_of_discriminator(...));
//   manual.step("discriminator");
//   manual.step("generator", loss_of_generator(...));  // backward and step
//
// With training.grad_accumulation_steps, training_step is called for each micro-batch. A step in an earlier
// micro-batch only keeps the gradients of its optimizer's parameters, to which later micro-batches add; the
// step in the last one updates the parameters. Code that depends on updated parameters asks updates().
// With training.deterministic, all micro-batches of a rank are in training_step at the same time, one after
// the other up to each step, which updates the parameters by the gradients of all: as if each were on a rank
// of its own.
class ManualOptimization {
 public:
  // Throws ConfigError for settings with which manual optimization cannot be combined. `optimizers` is that
  // of `engine`; `world` has all ranks of the job.
  ManualOptimization(const Recipe& recipe, parallel::Engine& engine, trainer::OptimizerSet& optimizers,
                     int64_t total_steps, const Group& world);

  // Adds the gradients of a loss, given as a sum and a count, to those since the last step. The gradients of
  // all optimizers' parameters are computed; a step uses those of its own parameters and then zeroes all.
  // Throws ConfigError like a loss of training_step, for a graph that an earlier backward has freed or whose
  // parameters were stepped since, and outside of training_step. Throws Error naming a parameter that was
  // replaced, or whose gradient was.
  void backward(const Loss& loss);

  // Sums the gradients over the ranks, divides by the sum of the counts, clips them by training.max_grad_norm
  // and max_grad_value, and steps the optimizer by its schedule. Returns the norm before clipping, the same
  // on all ranks; 0 if updates() is false. In fp16 the optimizer is not stepped if its gradients overflow,
  // and the norm is not finite. Throws Error like backward(), and if the loss or, in other precisions, the
  // gradients are not finite, with the ranks whose own are not: then training_step is called again, for its
  // gradients only. Throws ConfigError outside of training_step, if backward was not called since the last
  // step, and if ranks step different optimizers or did not call backward equally often. Collective.
  double step(const std::string& optimizer);

  // The same as backward(last) and step(optimizer), but the gradients are summed over the ranks while
  // backward runs.
  double step(const std::string& optimizer, const Loss& last);

  // Whether steps update parameters: this is the last micro-batch of the batch, or training.deterministic is
  // set.
  bool updates() const { return pass_.last || pass_.turns != nullptr; }

  // The learning rate of the optimizer's next step, and its number of steps so far.
  double lr(const std::string& optimizer) const;
  int64_t steps_done(const std::string& optimizer) const;

 private:
  friend class trainer::MicroBatchRunner;
  friend struct trainer::Session;
  friend class trainer::TrainingRun;
  // A micro-batch.
  struct Pass {
    bool running = false;            // training_step is
    bool idle = false;               // this rank has no samples; the batch is a substitute and does not count
    bool first = true, last = true;  // of the batch
    double loss_factor = 1;          // multiplies losses before backward
    // The micro-batches of the batch over all ranks whose counts are summed in a fixed order, and which of
    // them this is; one of all otherwise.
    int64_t parts = 1, part = 0;
    trainer::Turns* turns = nullptr;  // of this rank's micro-batches, if a step is one of all of them
    int64_t number = 0;               // among these
    size_t calls = 0;                 // of step() so far
  };
  // Sums of this rank's losses.
  struct Totals {
    explicit Totals(int64_t parts = 1) : counts(static_cast<size_t>(parts)) {}
    double loss = 0;
    std::vector<double> counts;
    int64_t backwards = 0;
  };
  // A batch that is repeated after a step whose gradients were not finite, up to the call of that step in
  // each micro-batch: the gradients are computed again, but not summed over the ranks.
  struct Search {
    size_t call;
    bool is_finite = true;  // the gradients on this rank
  };
  struct Found {};  // ends the repeated training_step; not a std::exception, so that modules do not catch it
  void begin(const Pass& pass);
  void end();
  std::string place_of(const std::string& call) const;
  std::string place_of_step(size_t optimizer) const;
  void require_running(const std::string& call) const;
  void require_own_tensors(const std::string& call) const;
  void add_gradients(const Loss& loss, const std::string& call);
  void run_backward(const Loss& loss, parallel::Reduce reduce, const std::string& call);
  double run_step(size_t optimizer, const Loss* loss);
  void require_same_call(size_t optimizer);
  void require_equal_calls(const std::map<int, trainer::RankCalls>& calls, size_t optimizer) const;
  double repeat_step(size_t optimizer, const Loss* loss);
  void keep(size_t optimizer);
  void restore(size_t optimizer);
  struct Sums;
  Sums sum_totals(size_t optimizer);
  double finish_step(size_t optimizer);
  void add_state(State& state) const;
  void resume(const State& state);
  void set_total_steps(int64_t total_steps);
  std::string describe() const;
  int64_t batches_done() const { return batches_done_; }

  const TrainingConfig& training_;
  parallel::Engine& engine_;
  trainer::OptimizerSet& optimizers_;
  const int rank_, world_size_;
  Pass pass_;
  Totals totals_;                            // since the last step
  std::vector<std::optional<Totals>> kept_;  // of each optimizer, in earlier micro-batches of this batch
  int64_t backwards_ = 0;                    // since the last step
  int64_t steps_ = 0;                        // of this batch, by any optimizer
  std::vector<size_t> calls_;                // the optimizers that the first micro-batch stepped
  double last_norm_ = 0;                     // of the last update
  bool overflowed_ = false;                  // gradients of a step of this batch, in fp16
  std::optional<double> norm_;               // gradient norm of the batch's first update
  std::optional<Search> search_;
  int64_t batches_done_ = 0;
};

// Throws ConfigError unless `loss` is one element that requires grad, and a count that is finite and not
// negative. `subject` begins messages: "training_step returned".
void require_loss(const Loss& loss, const std::string& subject = "training_step returned");

}  // namespace stretto
