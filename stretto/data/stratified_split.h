#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace stretto::data {

struct Table;

// The indices of the samples in each of two parts, ascending.
struct Split {
  std::vector<int64_t> train, validation;
};

// Draws `fraction` of the samples for validation, with the same share of each label; the others remain for
// training. Deterministic, and thus equal on all ranks. Throws DataError if one of the two would be empty.
// REQUIRES: 0 < fraction < 1.
Split stratified_split(std::span<const int64_t> labels, double fraction, uint64_t seed);

// Moves the drawn rows of `train` to a new table with the same name, labels and columns.
Table take_validation(Table& train, double fraction, uint64_t seed);

}  // namespace stretto::data
