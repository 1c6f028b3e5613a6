#pragma once

#include <array>
#include <map>
#include <utility>

namespace stretto::nn {
class Block;
}

namespace stretto::parallel {

// The order in which blocks compute, in forward (pass 0) and backward (pass 1), learned from earlier passes.
class BlockOrder {
 public:
  // A block begins to compute.
  void add(const nn::Block& block, size_t pass) {
    if (first_[pass] == nullptr) first_[pass] = &block;
    const nn::Block* const previous = std::exchange(previous_[pass], &block);
    // The block before the first one is the last block of another pass.
    if (previous != nullptr && previous != &block && first_[pass] != &block) next_[pass][previous] = &block;
  }
  // The block that followed `block` the last time; null: none is known.
  const nn::Block* after(const nn::Block& block, size_t pass) const {
    const auto next = next_[pass].find(&block);
    return next == next_[pass].end() ? nullptr : next->second;
  }
  // The next blocks begin another step.
  void begin_step() { previous_ = {}; }

 private:
  std::array<const nn::Block*, 2> first_ = {}, previous_ = {};
  std::array<std::map<const nn::Block*, const nn::Block*>, 2> next_;
};

}  // namespace stretto::parallel
