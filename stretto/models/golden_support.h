#pragma once

#include <string>

#include <gtest/gtest.h>

#include <torch/nn/module.h>

#include "stretto/tensor/batch.h"
#include "stretto/tensor/safetensors.h"

// Common parts of tests against tests/golden/bert, bert_heads, roberta and bart.
namespace stretto {

// The packed batch in a golden file.
inline Batch packed_batch(const NamedTensors& golden, const std::string& prefix = "") {
  Batch batch;
  batch.tensors["input_ids"] = golden.at(prefix + "ids");
  for (const char* name : {"token_type_ids", "labels", "starts", "ends"})
    if (golden.contains(prefix + name)) batch.tensors[name] = golden.at(prefix + name);
  const Tensor bounds = golden.at(prefix + "cu_seqlens");
  batch.tensors["cu_seqlens"] = bounds;
  std::vector<Tensor> positions, samples;
  for (int64_t b = 0; b + 1 < bounds.numel(); ++b) {
    const int64_t length = (bounds[b + 1] - bounds[b]).item<int64_t>();
    positions.push_back(at::arange(length));
    samples.push_back(at::full({length}, b, at::kLong));
  }
  batch.tensors["position_ids"] = at::cat(positions);
  batch.tensors["samples"] = at::cat(samples);
  return batch;
}

// Largest difference, relative to the reference's largest value.
inline double relative_difference(const Tensor& found, const Tensor& wanted) {
  const double scale = wanted.abs().max().item<double>();
  const double difference = (found.to(at::kDouble) - wanted.to(at::kDouble)).abs().max().item<double>();
  return scale > 1e-12 ? difference / scale : difference;
}

// Compares the gradients of all parameters with those in a golden file.
inline void expect_golden_gradients(const torch::nn::Module& model, const NamedTensors& golden,
                                    const std::string& precision, double tolerance) {
  int compared = 0;
  double largest = 0;
  for (const auto& [key, wanted] : golden) {
    if (key.find(precision + ".grad.") == 0) largest = std::max(largest, wanted.abs().max().item<double>());
  }
  for (const auto& item : model.named_parameters()) {
    const Tensor& wanted = golden.at(precision + ".grad." + item.key());
    // A gradient that is zero in theory (the key's bias) is a rounding error: it is compared relative to the
    // largest gradient of the model.
    const bool vanishing = wanted.abs().max().item<double>() < 1e-5 * largest;
    const double difference = vanishing ? (item.value().grad() - wanted).abs().max().item<double>() / largest
                                        : relative_difference(item.value().grad(), wanted);
    EXPECT_LT(difference, tolerance) << item.key();
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

// Runs backward, and compares logits, the sum of losses and the gradients of all parameters with those in a
// golden file.
inline void expect_golden_pass(const torch::nn::Module& model, const Tensor& logits, const Tensor& loss_sum,
                               const NamedTensors& golden, const std::string& precision, double tolerance) {
  EXPECT_LT(relative_difference(logits.detach(), golden.at(precision + ".logits")), tolerance);
  EXPECT_LT(relative_difference(loss_sum.detach(), golden.at(precision + ".loss_sum")), tolerance);
  loss_sum.backward();
  expect_golden_gradients(model, golden, precision, tolerance);
}

}  // namespace stretto
