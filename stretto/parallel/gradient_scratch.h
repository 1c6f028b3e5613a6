#pragma once

#include <map>

#include "stretto/parallel/arena.h"
#include "stretto/parallel/scratch_buffers.h"

namespace stretto::parallel {

// Memory for the gradients of units that this rank does not own entirely, from the time that backward fills
// them until they are reduced. Few units need it at a time and blocks have similar sizes, so a few buffers
// are enough for all of them.
class GradientScratch {
 public:
  // `allocator` gives memory that collectives reduce in place.
  GradientScratch(Arena& arena, const Allocator& allocator);

  // Whether the gradients of a unit need scratch memory. If gradients are not sharded, none do.
  bool serves(size_t unit) const;
  bool is_open(size_t unit) const { return arena_.units()[unit].gradients.defined(); }

  // Gives the parameters of a unit gradients: zeros, or those that autograd has already allocated and
  // computed.
  void open(size_t unit);
  // Removes the gradients of the unit's parameters.
  void close(size_t unit);
  void open_all();
  void close_all();

  // Frees the memory of reduced elements of an open unit if the unit is large.
  void release(size_t unit, const Range& range);

 private:
  void use_small_pages_for_tables(size_t unit, const Tensor& gradients) const;

  Arena& arena_;
  ScratchBuffers buffers_;           // of zeros
  std::map<size_t, Tensor> in_use_;  // by unit
};

}  // namespace stretto::parallel
