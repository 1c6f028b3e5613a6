#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stretto/optim/optimizer.h"

namespace stretto::optim {

class LazyRows;
class RowRule;

// Base of elementwise optimizers: their state is a few tensors as long as the buffers, and neighbouring
// pieces with the same settings are updated in one pass. A subclass defines the names of its state and the
// rule for one range; if it steps_rows(), it also implements RowRule (lazy_rows.h) for tables, like AdamW.
class ElementwiseOptimizer : public Optimizer {
 public:
  ~ElementwiseOptimizer() override;
  void catch_up(size_t table, std::span<const int64_t> rows) override;
  void catch_up() override;
  int64_t state_bytes() const override;

 protected:
  // A range of elements that are updated with the same settings.
  struct Range {
    Buffers buffers;
    std::vector<Tensor> state;  // in the order of state_names()
    bool weight_decay;
    double lr_factor;
    int64_t row_width;
  };

  explicit ElementwiseOptimizer(const StepRates& base);
  virtual std::vector<std::string> state_names() const = 0;
  // Called once, to initialise state that does not begin with zeros.
  virtual void init_state(const Range& /*range*/) {}
  // Called before all ranges of a step; rates.lr excludes lr_factor.
  virtual void begin_step(const StepRates& /*rates*/, int64_t /*step*/) {}
  virtual void end_step(const StepRates& /*rates*/) {}
  // Updates one range. rates.lr includes the range's lr_factor.
  virtual void step_range(const Range& range, const StepRates& rates, double grad_scale, int64_t step) = 0;
  // The optimizer as a RowRule. REQUIRES: steps_rows().
  virtual RowRule& row_rule();
  // A table that row_rule() updates.
  const Range& table(size_t index) const { return tables_[index]; }

 private:
  void make_state(const Allocator& allocator) final;
  void update(const StepRates& rates, double grad_scale, int64_t step, const TouchedRows& touched) final;
  void add_piece_state(State& state, const std::string& prefix, const ParameterPiece& piece) const final;
  void on_resume() final;
  void make_ranges();
  void step_ranges(const StepRates& rates, double grad_scale, int64_t step);
  void add_range(int64_t begin, int64_t end, const ParameterPiece& piece, std::vector<Range>& ranges) const;

  std::vector<Tensor> state_;
  std::vector<Range> ranges_;  // without the tables
  std::vector<Range> tables_;
  std::unique_ptr<LazyRows> lazy_rows_;  // null without tables
};

}  // namespace stretto::optim
