#pragma once

#include <functional>
#include <span>
#include <vector>

#include "stretto/comm/group.h"
#include "stretto/nn/row_observer.h"
#include "stretto/parallel/arena.h"

namespace stretto::parallel {

// The gradient of an embedding table in the arena, of which a step touches few rows: reduction, norm and
// zeroing are restricted to these. All ranks first agree on the union of the rows that they touched.
class RowTable : public nn::RowObserver {
 public:
  // Observes the functions that use the table. `held`: the elements of the arena whose sums this rank keeps.
  // `arena` and `group` must outlive it.
  RowTable(const Arena& arena, const Arena::Parameter& parameter, const Range& held, Group& group);
  ~RowTable() override;
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;

  // Sets a callback that is called before rows are read; `rows` may repeat.
  void on_read(std::function<void(std::span<const int64_t> rows)> callback) {
    on_read_ = std::move(callback);
  }

  void will_read(const Tensor& ids) override;
  void got_gradient(const Tensor& ids) override;

  // The two halves of a reduction; every rank calls both, also if there is one rank. Between them the table's
  // gradient must not change. REQUIRES: the table has a gradient (gradient_scratch.h).
  void start_reduction();
  void finish_reduction();

  // The rows that have a gradient on any rank after a reduction, ascending, and the sum of squares of the
  // gradients that this rank holds.
  std::span<const int64_t> rows() const { return rows_; }
  double sum_of_squares() const;

  void zero_gradient();  // of all rows that have a gradient, whether reduced or not
  void forget_rows();    // the optimizer has zeroed them

 private:
  // A part of rows(), with the columns that this rank holds.
  struct HeldRows {
    Tensor gradients;  // [R, columns] consecutive rows of the table
    Tensor index;      // the indices of the rows among these R
    Range rows;        // the same rows as a range of rows()
    Range columns;
  };
  void find_rows();
  Tensor row_index() const;
  // Whether only this rank keeps the gradient and it is in the arena; otherwise it is added to the gradient
  // in the arena.
  bool is_in_place() const;
  std::vector<HeldRows> held_rows() const;

  const Arena& arena_;
  const Arena::Parameter& parameter_;
  const Range held_;  // of the table's elements
  const int64_t width_;
  std::shared_ptr<nn::RowHook> hook_;
  Tensor touched_mask_;  // [rows] uint8: 1 where a row has a gradient
  Group& group_;
  Work touched_mask_work_;
  std::vector<int64_t> rows_;
  std::function<void(std::span<const int64_t>)> on_read_;
};

}  // namespace stretto::parallel
