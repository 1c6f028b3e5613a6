#include "stretto/parallel/leaf_watch.h"

#include <utility>

namespace stretto::parallel {

void LeafWatch::note(const GradientUses& uses, const std::vector<Tensor>& others) {
  for (size_t i = 0; i < uses.size(); ++i) used_[i] = used_[i] || uses[i] > 0;
  for (const Tensor& leaf : others) {
    if (leaf.requires_grad()) others_.emplace_back(leaf.getIntrusivePtr());
  }
}

WatchedLeaves LeafWatch::leaves() const {
  WatchedLeaves leaves;
  for (const auto& other : others_) {
    auto held = other.lock();
    if (held.defined()) leaves.outside.emplace_back(std::move(held));
  }
  for (size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i]) leaves.unused.push_back(i);
  }
  return leaves;
}

}  // namespace stretto::parallel
