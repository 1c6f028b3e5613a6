#pragma once

#include <vector>

#include "stretto/data/sample_lengths.h"

namespace stretto::data {

// The lengths in a vector, which must outlive the result.
inline SampleLengths lengths_of(const std::vector<int32_t>& lengths) {
  return {std::ssize(lengths),
          [&lengths](int64_t sample) { return lengths.at(static_cast<size_t>(sample)); }};
}

}  // namespace stretto::data
