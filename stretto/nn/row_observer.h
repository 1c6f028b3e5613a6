#pragma once

#include <memory>

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// An observer that lookup functions notify of the rows of an embedding table that they use. An engine can
// skip the other rows: their gradients are zero, and the functions do not read them.
class RowObserver {
 public:
  virtual ~RowObserver() = default;
  // Called before rows are read. ids [T] int64, contiguous, on CPU, possibly with duplicates.
  virtual void will_read(const Tensor& ids) = 0;
  // Called after gradients have been added to these rows of the table's gradient buffer.
  virtual void got_gradient(const Tensor& ids) = 0;
};

// The observer of a table's rows, or null; kept by the owner of the table (nn::Embedding). The graphs of
// lookups share it, so an observer must reset it before it is destroyed. Used on the thread that uses the
// table.
struct RowHook {
  RowObserver* observer = nullptr;
};

// Whether a node of an autograd graph belongs to a function that notifies the observer in `hook`.
bool notifies_of_rows(const torch::autograd::Node& node, const RowHook& hook);

}  // namespace stretto::nn
