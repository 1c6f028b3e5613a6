#pragma once

#include <span>
#include <vector>

#include "stretto/kernels/adamw.h"
#include "stretto/optim/optimizer.h"

namespace stretto::optim {

// A step that idle rows may not have been through yet.
struct PastStep {
  StepRates rates;
  int64_t step;  // 1 at the first
};

// A rule that can step rows of a table by themselves. Tables are numbered in the order of the pieces with a row_width.
class RowRule {
 public:
  virtual ~RowRule() = default;
  // Steps these rows with their gradients, as the rule steps whole ranges.
  virtual void step_rows(size_t table, std::span<const int64_t> rows, const StepRates& rates,
                         double grad_scale, int64_t step) = 0;
  // Takes each row through steps[row.first], ... with a gradient of zero, to the bits that step_rows() would give.
  virtual void step_idle_rows(size_t table, std::span<const kernels::IdleRow> rows,
                              std::span<const PastStep> steps) = 0;
  // For each row, whether its state is other than zeros: [rows] bool.
  virtual Tensor rows_with_state(size_t table) const = 0;
};

// Tables of which each step touches few rows: the others are left for later, and taken through the steps they have
// missed, to the same bits, before they are read.
class LazyRows {
 public:
  // `rule` must outlive it. rows: of each table.
  LazyRows(RowRule& rule, const std::vector<int64_t>& rows);

  size_t tables() const { return tables_.size(); }

  // Steps the `touched` rows of each table. The rest of the step has been taken, or is about to be.
  void step(const TouchedRows& touched, const StepRates& rates, double grad_scale, int64_t step);
  // All rows have been through `step` in another way. REQUIRES: caught up.
  void stepped_all(int64_t step);

  void catch_up(size_t table, std::span<const int64_t> rows);
  void catch_up();  // all rows of all tables

  // The state has been written from outside, after so many steps.
  void resume(int64_t steps_done);

 private:
  // What is known of each row of a table.
  struct Table {
    std::vector<int64_t> done;       // steps it has been through
    std::vector<uint8_t> has_state;  // 0: its state is zeros
  };

  RowRule& rule_;
  std::vector<Table> tables_;
  std::vector<PastStep> past_;  // since all rows were last caught up
};

}  // namespace stretto::optim
