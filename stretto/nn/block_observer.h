#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

class Block;

// Called around each forward and backward of a block: where its parameters are gathered, released and prefetched.
//
//   before_forward, after_forward      once per call of the block's forward, also under NoGradGuard and when activation
//                                      checkpointing computes a forward again
//   before_backward, after_backward    once per backward of a forward that built a graph: before the first node of the
//                                      block's graph runs, and when the gradients of all its tensor arguments are
//                                      computed; at the end of backward where no argument requires grad or receives one
//
// Each before_ is followed by its after_, also when forward or backward throws; where a before_ itself throws, by none.
// An after_ must not throw: it may run while an exception propagates. Calls come on the thread that computes.
class BlockObserver {
 public:
  virtual ~BlockObserver() = default;
  virtual void before_forward(Block&) {}
  virtual void after_forward(Block&) noexcept {}
  virtual void before_backward(Block&) {}
  virtual void after_backward(Block&) noexcept {}
};

// A module whose parameters are gathered and released together: nn::sharded() makes one. The parameters below it, without
// those of blocks inside of it, are one unit of the arena. Without an observer, forward costs one comparison more and
// the autograd graph is that of the plain module.
class Block {
 public:
  // How forward and backward passes that are under way reach the block: empty once the block or the observer has gone.
  struct Link {
    Block* block = nullptr;
    BlockObserver* observer = nullptr;
  };

  Block() = default;
  Block(const Block&) {}                            // a copy is another block: without a path, not observed
  Block& operator=(const Block&) { return *this; }  // NOLINT(bugprone-unhandled-self-assignment)
  virtual ~Block() { observe(nullptr); }

  // The module itself.
  virtual torch::nn::Module& module() = 0;

  // The path of the module in its root, "" for the root itself: the name of its unit. Set by collect_blocks().
  const std::string& path() const { return path_; }

  // Calls of forward from now on are reported to `observer`; null: no reports, which also ends the reports of backward
  // passes under way. `observer` must outlive that.
  void observe(BlockObserver* observer);

 protected:
  const std::shared_ptr<Link>& link() const { return link_; }  // null without an observer

 private:
  friend std::vector<Block*> collect_blocks(torch::nn::Module& root);
  std::string path_;
  std::shared_ptr<Link> link_;
};

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

// The blocks of a module tree in registration order, outer before inner ones, each once and with its path set.
std::vector<Block*> collect_blocks(torch::nn::Module& root);

}  // namespace stretto::nn
