#pragma once

#include <concepts>
#include <map>
#include <string>
#include <vector>

#include "stretto/tensor/tensor.h"

namespace stretto {

// What one training or evaluation step reads: tensors by name, the samples they came from, and how many of them count.
// A packed batch of T tokens in B sequences holds
//   input_ids [T], token_type_ids [T], position_ids [T] (in the sequence), samples [T] (dataset index of the token's
//   sample), cu_seqlens [B + 1] (where each sequence begins; the last is T), all int64, and labels [B] for classification.
struct Batch {
  std::map<std::string, Tensor> tensors;
  std::vector<int64_t> sample_ids;  // dataset index of each sample, in the batch's order
  // Samples that count; 0 for an empty batch, and for the stand-in that a Lite rank without a sample is given.
  int64_t count = 0;

  // The tensor `name`. Throws DataError naming those that exist.
  const Tensor& at(const std::string& name) const;
  bool has(const std::string& name) const { return tensors.count(name) > 0; }

  // The same batch on `device`.
  Batch to(at::Device device) const;
};

// A sum over samples or tokens and their number. Losses are reduced as sums, so that one division by the global count
// gives the mean over all ranks and accumulation steps, however the samples were distributed.
struct Loss {
  Loss() = default;
  Loss(Tensor loss_sum, double counted) : sum(std::move(loss_sum)), count(counted) {}
  Loss(Tensor loss_sum, std::integral auto counted)
      : Loss(std::move(loss_sum), static_cast<double>(counted)) {}

  Tensor sum;  // scalar that requires grad
  double count = 0;
};

// The loss of a batch whose mean over `count` samples or tokens is known.
Loss loss_of_mean(const Tensor& mean, int64_t count);

}  // namespace stretto
