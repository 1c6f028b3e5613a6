#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stretto/optim_config/schedule.h"
#include "stretto/tensor/state.h"

namespace stretto::optim {

// The flat buffers that an optimizer updates: this rank's part of all parameters. compute is undefined if the
// model computes with the master weights.
struct Buffers {
  Tensor master;   // [N] fp32 or fp64
  Tensor grad;     // [N] of master's dtype; zeroed by each step
  Tensor compute;  // [N] bf16 or fp16, rewritten by each step
};

// The granularity at which an optimizer can be sharded: a rank may have any elements, or needs whole rows,
// whole tensors, or all tensors.
enum class Placement { flat, rows, whole_tensor, whole_model };

// The loss of a step's batch, and the factor by which the gradients in the buffers must be multiplied.
struct Evaluation {
  double loss = 0;  // mean over the global batch
  double grad_scale = 1;
};

// Evaluates the batch of the step again with the current parameters. REQUIRES: gradients are zero.
using Reevaluate = std::function<Evaluation()>;

struct ParameterPiece;  // parameter_piece.h

// The rows that have gradients, ascending, of each piece with a row_width, in order.
using TouchedRows = std::vector<std::span<const int64_t>>;

// Memory of an optimizer that is in files (tensor/file_memory.h).
struct InFiles {
  bool state = false;       // that of its allocator
  bool parameters = false;  // master and compute
  int64_t at_once = 0;      // elements that an elementwise rule updates at a time
  bool any() const { return state || parameters; }
};

// An update rule and its state, over ranges of memory, independent of modules, ranks and files. Elementwise
// rules derive from ElementwiseOptimizer (elementwise.h), others from this class.
class Optimizer {
 public:
  virtual ~Optimizer();

  // The name that recipes and checkpoints use: "AdamW".
  virtual std::string name() const = 0;
  virtual Placement placement() const { return Placement::flat; }

  // Sets the memory to update, and allocates the state of the owned pieces. Call it once, before the first
  // step. Pieces are in the order of the buffers and do not overlap. Up to most_padding elements between two
  // pieces are padding: zeros with zero gradients, which steps may skip. More elements belong to another
  // optimizer. An elementwise rule has parts of what is `in_files` in memory only. Throws Error if a piece
  // lies outside of the buffers or is smaller than placement() requires.
  void bind(const Buffers& buffers, std::vector<ParameterPiece> pieces, const Allocator& allocator,
            const InFiles& in_files = {});

  // Takes one step with gradients multiplied by `grad_scale` (1 / global count, clipping). Zeroes the
  // gradients.
  //
  // If only `touched` rows of the tables have gradients, an optimizer that steps_rows() defers the other
  // rows: catch_up() applies their missed steps, with bitwise equal results, and must be called before they
  // are read.
  void step(const StepRates& rates, double grad_scale, const TouchedRows& touched = {});

  // Whether a step evaluates the loss more than once. Such an optimizer supports only the overload of step()
  // below; `first` is the evaluation whose gradients are in the buffers.
  virtual bool reevaluates() const { return false; }
  void step(const StepRates& rates, const Evaluation& first, const Reevaluate& again);

  // Whether it can defer rows without gradients. If not, step() updates all rows.
  virtual bool steps_rows() const { return false; }
  // Whether the rule leaves rows without a gradient unchanged; a row has a gradient if one of its values is
  // nonzero. Every strategy then sets the row_width of its pieces of tables. REQUIRES: placement() is
  // Placement::rows or coarser.
  virtual bool keeps_idle_rows() const { return false; }
  virtual void catch_up(size_t /*table*/, std::span<const int64_t> /*rows*/) {}
  virtual void catch_up() {}  // updates all rows of all tables

  // Counts a skipped step.
  void skip_step() { ++steps_done_; }
  int64_t steps_done() const { return steps_done_; }

  // The rates that are used unless a schedule sets others.
  const StepRates& base_rates() const { return base_; }

  // Adds entries "<prefix>.<state>.<parameter>" ("optimizer.exp_avg.encoder.weight") that refer to the live
  // state, and scalars[prefix] = {type, steps}. REQUIRES: bound, and no row misses a step.
  void add_state(State& state, const std::string& prefix) const;
  // Resumes after the tensors that add_state() added were loaded. Throws ConfigError if `state` belongs to
  // another type of optimizer.
  void resume(const State& state, const std::string& prefix);
  // The size of the state in bytes. REQUIRES: bound.
  virtual int64_t state_bytes() const = 0;

 protected:
  explicit Optimizer(const StepRates& base);

  virtual void make_state(const Allocator& allocator) = 0;
  // `step`: from 1.
  virtual void update(const StepRates& rates, double grad_scale, int64_t step,
                      const TouchedRows& touched) = 0;
  virtual void update(const StepRates& rates, const Evaluation& first, const Reevaluate& /*again*/,
                      int64_t step) {
    update(rates, first.grad_scale, step, {});
  }
  // Adds the entries of one piece for add_state().
  virtual void add_piece_state(State& state, const std::string& prefix,
                               const ParameterPiece& piece) const = 0;
  // Adds scalar state, which is saved in scalars[prefix] next to type and steps.
  virtual void add_scalars(nlohmann::json& /*scalars*/) const {}
  virtual void read_scalars(const nlohmann::json& /*scalars*/) {}
  // Called after the state was loaded.
  virtual void on_resume() {}
  // Adds the state of other optimizers that this one consists of.
  virtual void add_parts(State& /*state*/, const std::string& /*prefix*/) const {}
  virtual void resume_parts(const State& /*state*/, const std::string& /*prefix*/) {}

  const Buffers& buffers() const { return buffers_; }
  const InFiles& in_files() const { return in_files_; }  // see bind()
  const std::vector<ParameterPiece>& pieces() const { return pieces_; }

 private:
  void check_pieces() const;
  void require_bound() const;

  StepRates base_;
  int64_t steps_done_ = 0;
  InFiles in_files_;
  Buffers buffers_;
  std::vector<ParameterPiece> pieces_;
};

// Elements [begin, end) of each buffer.
Buffers slice(const Buffers& buffers, int64_t begin, int64_t end);

}  // namespace stretto::optim
