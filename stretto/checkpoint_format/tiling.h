#pragma once

#include <optional>
#include <span>
#include <vector>

#include "stretto/base/region.h"

namespace stretto::checkpoint_format {

// Checks that regions partition a tensor, that is, that each element lies in exactly one. Regions may have
// different forms (rows, columns, flat shards); the cost depends on their number, not on their size.

// An element that lies in no region, or in several.
struct Miscovered {
  std::vector<int64_t> element;
  int64_t regions = 0;  // the number of regions that contain it: 0, or more than 1
};

// The first such element in row-major order; nullopt if there is none. REQUIRES: the regions lie inside the
// tensor. Throws DataError for a tensor of more than eight axes that is not one region.
std::optional<Miscovered> first_miscovered(const std::vector<int64_t>& shape,
                                           std::span<const Region> regions);

bool contains(const Region& region, const std::vector<int64_t>& element);

}  // namespace stretto::checkpoint_format
