#pragma once

#include <map>
#include <memory>
#include <vector>

#include "stretto/base/range.h"
#include "stretto/comm/group.h"
#include "stretto/parallel/parameters.h"

namespace stretto::parallel {

class Arena;

// The parts of parameters among the ranks of Axis::tp of which several neighbours have the same one
// (Cut::copies), such as a head of keys and values in a model that has fewer of them than ranks. Each of
// these ranks computes a part of its gradient.
class CopiedParts {
 public:
  // `ranks`: those of Axis::tp. Collective. REQUIRES: the number of copies of each parameter divides their
  // number, and they outlive this object.
  CopiedParts(Group& ranks, const std::vector<NamedParameter>& parameters);

  // Whether this rank is the first that has its part of the parameter. Its elements count in norms and sums.
  bool is_first(const TensorLayout& layout) const;

  // The ranks that have the same parts as this one, by the number of copies.
  const std::map<int, std::unique_ptr<Group>>& groups() const { return groups_; }

  // Completes the gradients of the elements `held` of the arena. Collective.
  void sum_gradients(const Arena& arena, const Range& held) const;

 private:
  Group& ranks_;
  std::map<int, std::unique_ptr<Group>> groups_;
};

// The number of neighbouring ranks that have this rank's part of a parameter; 1 also if it is not divided.
int copies_of(const TensorLayout& layout);

}  // namespace stretto::parallel
