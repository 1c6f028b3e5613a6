#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// Told which rows of a table are used, by the functions that look rows up. Whoever keeps such a table can leave the other
// rows alone: their gradients are zeros, and those functions do not read them.
class RowObserver {
 public:
  virtual ~RowObserver() = default;
  // Before rows are read. ids [T] int64, contiguous, on CPU; rows may come several times.
  virtual void will_read(const Tensor& ids) = 0;
  // After gradients have been added to these rows of the table's gradient buffer.
  virtual void got_gradient(const Tensor& ids) = 0;
};

// From now on `observer` is told of `table`, in place of one before, until it stops, which it must before it ends. On the
// thread that uses the table.
void observe_rows(const Tensor& table, RowObserver& observer);
void stop_observing_rows(const Tensor& table, const RowObserver& observer);

// Who is told of `table`, or null.
RowObserver* row_observer(const Tensor& table);

// Whether a node of an autograd graph is of a function that tells observers which rows it uses.
bool uses_rows(const torch::autograd::Node& node);

}  // namespace stretto::nn
