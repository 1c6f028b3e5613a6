#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace stretto::data {

struct Table;

// Draws `fraction` of the samples, with the same share of each label: the indices of those that remain and of those that are
// drawn, each ascending. A function of its arguments alone, the same on every rank. Throws DataError if one of the two would be
// empty. REQUIRES: 0 < fraction < 1.
struct Split {
  std::vector<int64_t> train, validation;
};
Split stratified_split(std::span<const int64_t> labels, double fraction, uint64_t seed);

// Moves the drawn rows of `train` to a table of its own, with the same name, labels and columns.
Table take_validation(Table& train, double fraction, uint64_t seed);

}  // namespace stretto::data
