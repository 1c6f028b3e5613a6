#pragma once

#include <memory>
#include <vector>

#include "stretto/nn/block_observer.h"
#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// One forward of an observed block, and the hooks from which its backward is known. Hooks rather than nodes of our own:
// outputs and arguments may still be modified in place.
class BlockPass {
 public:
  // Calls before_forward; the destructor calls after_forward.
  explicit BlockPass(std::shared_ptr<Block::Link> link);
  ~BlockPass();
  BlockPass(const BlockPass&) = delete;
  BlockPass& operator=(const BlockPass&) = delete;

  // Replaces a tensor argument that requires grad by an alias, whose gradient is what this block alone contributes.
  void watch_argument(Tensor& argument);

  // REQUIRES: all arguments are watched.
  void watch_result(Tensor& result);

 private:
  class Backward;
  std::shared_ptr<Block::Link> link_;
  std::shared_ptr<Backward> backward_;
  std::vector<const torch::autograd::Node*> arguments_;  // of the aliases
  std::vector<const torch::autograd::Node*> outside_;    // of what they are views of
};

}  // namespace stretto::nn
