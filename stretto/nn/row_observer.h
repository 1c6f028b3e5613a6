#pragma once

#include <memory>

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// Notified which rows of a table are used, by the functions that look rows up. An engine that holds such a table can leave
// the other rows alone: their gradients are zeros, and those functions do not read them.
class RowObserver {
 public:
  virtual ~RowObserver() = default;
  // Before rows are read. ids [T] int64, contiguous, on CPU; rows may come several times.
  virtual void will_read(const Tensor& ids) = 0;
  // After gradients have been added to these rows of the table's gradient buffer.
  virtual void got_gradient(const Tensor& ids) = 0;
};

// Where the owner of a table (nn::Embedding) keeps the observer of its rows, null if there is none. The graphs of lookups
// share it, so an observer must reset it before it is destroyed. Used on the thread that uses the table.
struct RowHook {
  RowObserver* observer = nullptr;
};

// Whether a node of an autograd graph is of a function that notifies the observer in `hook` of the rows it uses.
bool notifies_of_rows(const torch::autograd::Node& node, const RowHook& hook);

}  // namespace stretto::nn
