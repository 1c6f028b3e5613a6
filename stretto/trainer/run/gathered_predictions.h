#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stretto/comm/group.h"
#include "stretto/tensor/batch.h"

namespace stretto::trainer {

// The predictions of one rank's part of a dataset, and those of the whole dataset.
class GatheredPredictions {
 public:
  // Adds those of one batch; `samples`: their indices in the dataset. Batches without predictions are left
  // out. Throws ShapeError if a batch has rows and an earlier one has none or rows of another width, or has
  // bytes and an earlier one has none.
  void add(std::span<const int64_t> samples, Predictions predictions);

  // Returns the predictions of `dataset_size` samples in dataset order, on rank 0, and none on other ranks.
  // Samples without predictions have NaN and "". Throws ShapeError if those of two ranks differ in form.
  // Collective.
  Predictions gather(Group& group, int64_t dataset_size) const;

 private:
  std::string encode() const;

  std::vector<int64_t> samples_;
  std::vector<Tensor> rows_;        // of each batch
  std::vector<std::string> bytes_;  // of each sample, or empty
};

}  // namespace stretto::trainer
