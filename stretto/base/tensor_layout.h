#pragma once

#include <cstdint>
#include <vector>

#include "stretto/base/mesh_axis.h"
#include "stretto/base/range.h"
#include "stretto/base/region.h"

namespace stretto {

// The intervals along one axis of a tensor that a position on an axis of the mesh holds.
struct Cut {
  Axis over = Axis::tp;
  int axis = 0;  // of the tensor
  std::vector<Range>
      mine;             // ascending, without overlaps: one; three of a weight that fuses query, key and value
  int64_t largest = 0;  // elements along `axis` at the position that has most
  int copies = 1;       // so many neighbouring positions hold equal intervals
};

// Elements of the local tensor that are a region of the global one, and where they lie among the local
// elements.
struct LocalBox {
  Region region;
  int64_t first = 0;           // the row-major local element at which they begin
  std::vector<int64_t> sizes;  // of a view of them, in the order of the region's elements
  std::vector<int64_t> strides;
};

// Elements that are next to each other both here and in the global tensor.
struct LocalRun {
  int64_t local = 0;   // the row-major element at which they begin here
  int64_t global = 0;  // and there
  int64_t elements = 0;
};

// Where the tensor that a rank holds lies in the global one. A file has the global tensor, under one name,
// whatever mesh a run has. The local tensor is the intervals of each cut axis, joined: row-major, without
// gaps.
struct TensorLayout {
  std::vector<int64_t> global;  // the shape
  std::vector<Cut> cuts =
      {};  // at most one per axis of the tensor and axis of the mesh; none: all of it is here

  std::vector<int64_t> local() const;  // the shape of what is here
  int64_t slot() const;                // elements here at the position that has most

  // Row-major local elements [begin, end) as regions of the global tensor, which do not overlap. One region
  // where nothing is cut, or each cut is one interval. REQUIRES: they exist.
  std::vector<LocalBox> boxes(int64_t begin, int64_t end) const;

  // All local elements, in their order, as runs: one where nothing is cut.
  std::vector<LocalRun> runs() const;

  // The layout of a tensor with one element along `axis` (negative: from the end), such as a sum along it.
  TensorLayout collapsed(int axis) const;

  // Throws DataError unless the intervals of each cut lie, ascending, inside an axis that no other cut has.
  void check() const;
};

}  // namespace stretto
