#pragma once

#include <cstdint>
#include <functional>

namespace stretto::data {

// The length of each sample of a dataset in tokens, by which ranks are balanced. Lengths are computed on
// demand, so that a corpus needs no memory per sample.
struct SampleLengths {
  int64_t size = 0;                         // samples
  std::function<int32_t(int64_t)> of = {};  // of the sample at an index in [0, size), >= 0; thread-safe

  int64_t total() const {
    int64_t tokens = 0;
    for (int64_t sample = 0; sample < size; ++sample) tokens += of(sample);
    return tokens;
  }
};

}  // namespace stretto::data
