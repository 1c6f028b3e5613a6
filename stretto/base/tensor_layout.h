#pragma once

#include <cstdint>
#include <vector>

#include "stretto/base/mesh_axis.h"
#include "stretto/base/range.h"
#include "stretto/base/region.h"

namespace stretto {

// The intervals along one axis of a tensor that a position on an axis of the mesh has.
struct Cut {
  Axis over = Axis::tp;
  int axis = 0;  // of the tensor
  std::vector<Range>
      intervals;        // ascending, without overlaps: one; three of a weight that fuses query, key and value
  int64_t largest = 0;  // elements along `axis` at the position that has most
  int copies = 1;       // the number of neighbouring positions that have equal intervals
};

// Elements of the local tensor that form a region of the global one, and their positions in the local tensor.
struct LocalBox {
  Region region;
  int64_t first = 0;           // their first row-major local element
  std::vector<int64_t> sizes;  // shape of a view of them, in the order of the region's elements
  std::vector<int64_t> strides;
};

// Elements that are contiguous both in the local and in the global tensor.
struct LocalRun {
  int64_t local = 0;   // their first row-major element in the local tensor
  int64_t global = 0;  // the same element's row-major index in the global tensor
  int64_t elements = 0;
};

// How the local tensor of a rank maps to the global one. Files contain the global tensor, under one name,
// for any mesh of a run. The local tensor joins the intervals of each cut axis; it is row-major and has
// no gaps.
struct TensorLayout {
  std::vector<int64_t> global;  // the shape
  // At most one per axis of the tensor and axis of the mesh; none: the local tensor is the global one.
  std::vector<Cut> cuts = {};

  std::vector<int64_t> local() const;  // the shape of the local tensor
  int64_t slot() const;                // local elements at the position that has most

  // Row-major local elements [begin, end) as disjoint regions of the global tensor: one region if nothing is
  // cut or each cut is one interval. REQUIRES: 0 <= begin <= end <= the number of local elements.
  std::vector<LocalBox> boxes(int64_t begin, int64_t end) const;

  // All local elements, in order, as runs: one if nothing is cut.
  std::vector<LocalRun> runs() const;

  // The layout of a tensor with one element along `axis` (negative: from the end), such as a sum along it.
  TensorLayout collapsed(int axis) const;

  // Throws DataError unless the intervals of each cut lie, ascending, inside an axis that no other cut has.
  void check() const;
};

}  // namespace stretto
