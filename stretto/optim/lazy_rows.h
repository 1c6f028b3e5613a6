#pragma once

#include <span>
#include <vector>

#include "stretto/kernels/adamw.h"
#include "stretto/optim/optimizer.h"

namespace stretto::optim {

// A past step, which may still have to be applied to idle rows.
struct PastStep {
  StepRates rates;
  int64_t step;  // from 1
};

// A rule that can update single rows of a table. Tables are numbered in the order of the pieces with a
// row_width.
class RowRule {
 public:
  virtual ~RowRule() = default;
  // Updates these rows with their gradients, like the rule for whole ranges.
  virtual void step_rows(size_t table, std::span<const int64_t> rows, const StepRates& rates,
                         double grad_scale, int64_t step) = 0;
  // Applies steps[row.first], ... to each row with a zero gradient; bitwise equal to step_rows().
  virtual void step_idle_rows(size_t table, std::span<const kernels::IdleRow> rows,
                              std::span<const PastStep> steps) = 0;
  // Whether the state of each row is nonzero: [rows] bool.
  virtual Tensor rows_with_state(size_t table) const = 0;
};

// Lazy updates of tables of which each step touches few rows: the missed steps of other rows are applied
// before they are read, with bitwise equal results.
class LazyRows {
 public:
  // `rule` must outlive this object. rows: the number of rows of each table.
  LazyRows(RowRule& rule, const std::vector<int64_t>& rows);

  size_t tables() const { return tables_.size(); }

  // Updates the `touched` rows of each table; the caller updates all other parameters.
  void step(const TouchedRows& touched, const StepRates& rates, double grad_scale, int64_t step);
  // Records that the caller has applied `step` to all rows. REQUIRES: no row misses a step.
  void stepped_all(int64_t step);

  void catch_up(size_t table, std::span<const int64_t> rows);
  void catch_up();  // applies missed steps to all rows of all tables

  // Call it after the state was restored, with the number of steps that it includes.
  void resume(int64_t steps_done);

 private:
  // The status of each row of a table.
  struct Table {
    std::vector<int64_t> done;       // number of steps applied to the row
    std::vector<uint8_t> has_state;  // 0: its state is zeros
  };

  RowRule& rule_;
  std::vector<Table> tables_;
  std::vector<PastStep> past_;  // steps since all rows were last up to date
};

}  // namespace stretto::optim
