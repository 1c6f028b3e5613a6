#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stretto/optim_config/schedule.h"
#include "stretto/tensor/state.h"

namespace stretto::optim {

// The flat buffers an optimizer steps: this rank's part of all parameters. compute is undefined where the model computes in
// the master's type.
struct Buffers {
  Tensor master;   // [N] fp32 or fp64
  Tensor grad;     // [N] of master's type; zeroed by each step
  Tensor compute;  // [N] bf16, rewritten by each step
};

// How much an optimizer must hold on one rank: any elements, whole rows, all of a tensor, or all tensors.
enum class Placement { flat, rows, whole_tensor, whole_model };

// The loss of a step's batch, and the factor by which the gradients in the buffers must be multiplied.
struct Evaluation {
  double loss = 0;  // mean over the global batch
  double grad_scale = 1;
};

// Evaluates the batch of the step again, with the parameters as they are now. REQUIRES: gradients are zero.
using Reevaluate = std::function<Evaluation()>;

struct ParameterPiece;  // parameter_piece.h

// The rows that have gradients, ascending, of each piece with a row_width, in order.
using TouchedRows = std::vector<std::span<const int64_t>>;

// An update rule and its state, over ranges of memory. It knows nothing of modules, ranks or files. Element-wise rules
// derive from ElementwiseOptimizer (elementwise.h), others from this class.
class Optimizer {
 public:
  virtual ~Optimizer();

  // The name that recipes and checkpoints use: "AdamW".
  virtual std::string name() const = 0;
  virtual Placement placement() const { return Placement::flat; }

  // Takes the memory it will step, and allocates its state for what is owned. Once, before the first step. Pieces are in the
  // order of the buffers and do not overlap; elements between two pieces are padding: zeros with zero gradients, which
  // steps may pass over. Throws Error where a piece lies outside of the buffers or splits what placement() keeps whole.
  void bind(const Buffers& buffers, std::vector<ParameterPiece> pieces, const Allocator& allocator);

  // One step with gradients multiplied by `grad_scale` (1 / global count, clipping). Zeroes the gradients.
  //
  // Where only `touched` rows of the tables have gradients, an optimizer that steps_rows() leaves the other rows for later:
  // catch_up() takes them through the steps they have missed, to the same bits, and must be called before they are read.
  void step(const StepRates& rates, double grad_scale, const TouchedRows& touched = {});

  // Whether its steps evaluate the loss more than once. Such an optimizer takes these steps only: `first` is what is in the buffers.
  virtual bool reevaluates() const { return false; }
  void step(const StepRates& rates, const Evaluation& first, const Reevaluate& again);

  // Whether it can leave rows without gradients for later. If not, step() steps them with the rest.
  virtual bool steps_rows() const { return false; }
  // Whether rows without a gradient stay as they are, which makes it part of the rule which rows have one: those
  // with a value other than zero. Every strategy then gives its pieces of tables their row_width. REQUIRES: a
  // placement() of whole rows.
  virtual bool keeps_idle_rows() const { return false; }
  virtual void catch_up(size_t /*table*/, std::span<const int64_t> /*rows*/) {}
  virtual void catch_up() {}  // all rows of all tables

  // Counts a step that is not taken.
  void skip_step() { ++steps_done_; }
  int64_t steps_done() const { return steps_done_; }

  // What it steps with where no schedule sets anything else.
  const StepRates& base_rates() const { return base_; }

  // Adds entries "<prefix>.<state>.<parameter>" ("optimizer.exp_avg.encoder.weight") that refer to the living state, and
  // scalars[prefix] = {type, steps}. REQUIRES: bound, and caught up.
  void add_state(State& state, const std::string& prefix) const;
  // Continues where `state` was described: its tensors have been written to. Throws ConfigError where it is another type's.
  void resume(const State& state, const std::string& prefix);
  // Memory of its state, in bytes. REQUIRES: bound.
  virtual int64_t state_bytes() const = 0;

 protected:
  explicit Optimizer(const StepRates& base);

  virtual void make_state(const Allocator& allocator) = 0;
  // `step` is 1 at the first.
  virtual void update(const StepRates& rates, double grad_scale, int64_t step,
                      const TouchedRows& touched) = 0;
  virtual void update(const StepRates& rates, const Evaluation& first, const Reevaluate& /*again*/,
                      int64_t step) {
    update(rates, first.grad_scale, step, {});
  }
  // Adds the entries of one piece, as add_state() does.
  virtual void add_piece_state(State& state, const std::string& prefix,
                               const ParameterPiece& piece) const = 0;
  // State that is numbers, saved in scalars[prefix] beside type and steps.
  virtual void add_scalars(nlohmann::json& /*scalars*/) const {}
  virtual void read_scalars(const nlohmann::json& /*scalars*/) {}
  // After the state has been written from outside.
  virtual void on_resume() {}
  // The state of the optimizers that this one is made of, if it is.
  virtual void add_parts(State& /*state*/, const std::string& /*prefix*/) const {}
  virtual void resume_parts(const State& /*state*/, const std::string& /*prefix*/) {}

  const Buffers& buffers() const { return buffers_; }
  const std::vector<ParameterPiece>& pieces() const { return pieces_; }

 private:
  void check_pieces() const;
  void require_bound() const;

  StepRates base_;
  int64_t steps_done_ = 0;
  Buffers buffers_;
  std::vector<ParameterPiece> pieces_;
};

// Elements [begin, end) of each buffer.
Buffers slice(const Buffers& buffers, int64_t begin, int64_t end);

}  // namespace stretto::optim
