#pragma once

#include <concepts>
#include <map>
#include <string>
#include <vector>

#include "stretto/tensor/tensor.h"

namespace stretto {

// The input of one training or validation step: tensors by name, the dataset indices of the samples, and
// their number. A packed batch of T tokens in B sequences has the following int64 tensors; tokens after the
// last sequence are padding, which no loss or attention may read.
//   input_ids [T], token_type_ids [T], position_ids [T] (in the sequence)
//   samples [T] (dataset index of the token's sample)
//   places [T] (the token's row in its sample; may be absent if no two sequences are of one sample)
//   cu_seqlens [B + 1] (the beginning of each sequence, and the end of the last one)
//   labels [B] for classification
struct Batch {
  std::map<std::string, Tensor> tensors;
  std::vector<int64_t> sample_ids;  // dataset index of each sample, in the batch's order
  // Number of samples; 0 for an empty batch, and for the dummy batch that a Lite rank without samples
  // receives.
  int64_t count = 0;

  // The tensor `name`. Throws DataError, which lists the existing names, if there is none.
  const Tensor& at(const std::string& name) const;
  bool has(const std::string& name) const { return tensors.count(name) > 0; }

  // Returns a copy of the batch on `device`.
  Batch to(at::Device device) const;
};

// A sum over samples or tokens and their number. Losses are reduced as sums, so that one division by the
// global count yields the mean over all ranks and micro-batches, independently of how samples were
// distributed.
struct Loss {
  Loss() = default;
  // `loss_sum`: a scalar.
  Loss(Tensor loss_sum, double counted) : sum(std::move(loss_sum)), count(counted) {}
  Loss(Tensor loss_sum, std::integral auto counted)
      : Loss(std::move(loss_sum), static_cast<double>(counted)) {}

  Tensor sum;  // scalar that requires grad
  double count = 0;
};

// What a step that evaluates or predicts returns: for each sample of its batch, in the batch's order, a row
// of values, bytes such as a text, or both. Those of a dataset are in its order.
struct Predictions {
  Predictions() = default;
  // `values`: the rows, [samples, K].
  // NOLINTNEXTLINE(google-explicit-constructor): a step may return its rows
  Predictions(Tensor values, std::vector<std::string> of_samples = {})
      : rows(std::move(values)), bytes(std::move(of_samples)) {}

  bool empty() const { return !rows.defined() && bytes.empty(); }

  Tensor rows;                     // [samples, K] float64; undefined if there are none
  std::vector<std::string> bytes;  // of each sample; empty if there are none
};

// Converts a mean over `count` samples or tokens, a scalar, to a Loss.
Loss loss_of_mean(const Tensor& mean, int64_t count);

}  // namespace stretto
