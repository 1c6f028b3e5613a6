#pragma once

#include <vector>

#include "stretto/tensor/batch.h"

namespace stretto::nn {

// The layout of sequences of these lengths, each a sample, as a batch without tokens.
inline Batch packed_batch_of(const std::vector<int64_t>& lengths) {
  Batch batch;
  std::vector<int64_t> bounds = {0}, positions, samples;
  for (size_t i = 0; i < lengths.size(); ++i) {
    bounds.push_back(bounds.back() + lengths[i]);
    for (int64_t position = 0; position < lengths[i]; ++position) {
      positions.push_back(position);
      samples.push_back(static_cast<int64_t>(i));
    }
  }
  batch.tensors = {{"cu_seqlens", at::tensor(bounds)},
                   {"position_ids", at::tensor(positions)},
                   {"samples", at::tensor(samples)}};
  batch.count = std::ssize(lengths);
  return batch;
}

}  // namespace stretto::nn
