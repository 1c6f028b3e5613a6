#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

class Block;

// Callbacks around each forward and backward of a block, in which its parameters are gathered, released and
// prefetched.
//
//   before_forward, after_forward    once per call of the block's forward, also under NoGradGuard and when
//                                    activation checkpointing recomputes a forward
//   before_backward, after_backward  once per backward of a forward that built a graph: before the first node
//                                    of the block's graph runs, and when the gradients of all its tensor
//                                    arguments are computed, or at the end of backward if none requires or
//                                    receives one
//
// Each before_ is followed by its after_, even if forward or backward throws, but not if the before_ itself
// throws. An after_ must not throw: it may run while an exception propagates. Callbacks run on the thread
// that computes.
class BlockObserver {
 public:
  virtual ~BlockObserver() = default;
  virtual void before_forward(Block&) {}
  virtual void after_forward(Block&) noexcept {}
  virtual void before_backward(Block&) {}
  virtual void after_backward(Block&) noexcept {}
};

// A module whose parameters are gathered and released together; made by nn::sharded(). The parameters below
// it, without those of nested blocks, are one unit of the arena. Without an observer, forward costs one
// additional comparison and the autograd graph is that of the plain module.
class Block {
 public:
  // The reference of running forward and backward passes to the block; empty once the block or the observer
  // is destroyed.
  struct Link {
    Block* block = nullptr;
    BlockObserver* observer = nullptr;
  };

  Block() = default;
  Block(const Block&) {}                            // a copy is a new block without path and observer
  Block& operator=(const Block&) { return *this; }  // NOLINT(bugprone-unhandled-self-assignment)
  virtual ~Block() { observe(nullptr); }

  // The module itself.
  virtual torch::nn::Module& module() = 0;

  // The path of the module in its root, "" for the root itself: the name of its unit. Set by
  // collect_blocks().
  const std::string& path() const { return path_; }

  // Sets the observer of future calls of forward. Null removes it, also from running backward passes; until
  // then `observer` must stay alive.
  void observe(BlockObserver* observer);

 protected:
  const std::shared_ptr<Link>& link() const { return link_; }  // null without an observer

 private:
  friend std::vector<Block*> collect_blocks(torch::nn::Module& root);
  std::string path_;
  std::shared_ptr<Link> link_;
};

// One forward of an observed block, and the hooks that detect its backward. Hooks, unlike additional nodes,
// allow outputs and arguments to be modified in place.
class BlockPass {
 public:
  // Calls before_forward; the destructor calls after_forward.
  explicit BlockPass(std::shared_ptr<Block::Link> link);
  ~BlockPass();
  BlockPass(const BlockPass&) = delete;
  BlockPass& operator=(const BlockPass&) = delete;

  // Replaces a tensor argument of any shape that requires grad by an alias, whose gradient is the
  // contribution of this block only.
  void watch_argument(Tensor& argument);

  // Detects the start of backward by the gradient of a result of any shape. REQUIRES: all arguments are
  // watched.
  void watch_result(Tensor& result);

 private:
  class Backward;
  std::shared_ptr<Block::Link> link_;
  std::shared_ptr<Backward> backward_;
  std::vector<const torch::autograd::Node*> arguments_;  // of the aliases
  std::vector<const torch::autograd::Node*> outside_;    // nodes of the bases of views
};

// The blocks of a module tree in registration order, outer before inner ones, each once and with its path
// set.
std::vector<Block*> collect_blocks(torch::nn::Module& root);

}  // namespace stretto::nn
