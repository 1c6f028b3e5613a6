#pragma once

#include <functional>
#include <span>
#include <vector>

#include "stretto/comm/group.h"
#include "stretto/nn/row_observer.h"
#include "stretto/parallel/arena.h"

namespace stretto {

// The gradient of an embedding table of the arena, of which a step touches few rows: only these are reduced, measured
// and zeroed. All ranks first agree on the rows that any of them has touched.
class RowTable : public nn::RowObserver {
 public:
  // Listens to the functions that use the table. `buffers` and `group` must outlive it.
  RowTable(const Arena::Parameter& parameter, const optim::Buffers& buffers, Group& group);
  ~RowTable() override;
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;

  // Called before rows are read, which may come several times.
  void on_read(std::function<void(std::span<const int64_t> rows)> tell) { tell_read_ = std::move(tell); }

  void will_read(const Tensor& ids) override;
  void got_gradient(const Tensor& ids) override;

  // The two halves of a reduction; every rank calls both, with one rank too. Between them the table's gradient must not
  // change.
  void start_reduction();
  void finish_reduction();

  // After a reduction: rows that have a gradient on any rank, ascending, and what they hold.
  std::span<const int64_t> rows() const { return rows_; }
  double sum_of_squares() const;

  void zero_gradient();  // of rows()
  void forget_rows();    // somebody else has zeroed them

 private:
  Tensor row_index();

  std::shared_ptr<nn::RowHook> hook_;
  Tensor grad_;   // [rows, width], in the arena
  Tensor marks_;  // [rows] uint8: 1 where a row has a gradient
  Group& group_;
  Work marks_on_their_way_;
  std::vector<int64_t> rows_;
  Tensor together_;  // [rows_, width]: the reduced gradients of rows_
  std::function<void(std::span<const int64_t>)> tell_read_;
};

}  // namespace stretto
