#pragma once

#include <string>
#include <vector>

#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/intrusive_ptr.h>

#include "stretto/parallel/backward.h"
#include "stretto/tensor/tensor.h"

namespace stretto::parallel {

// What losses depended on, found once their graphs are gone.
struct WatchedLeaves {
  // Tensors that require grad, are not parameters of the module, and still exist: nothing trains them.
  std::vector<Tensor> outside;
  std::vector<size_t> unused;  // the indices of the parameters on which no loss depended
};

// Notes the leaves of graphs without keeping them.
class LeafWatch {
 public:
  explicit LeafWatch(size_t parameters) : used_(parameters) {}

  // `others`: the leaves that are not parameters.
  void note(const GradientUses& uses, const std::vector<Tensor>& others);
  WatchedLeaves leaves() const;

 private:
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> others_;
  std::vector<bool> used_;
};

}  // namespace stretto::parallel
