#include "stretto/nn/recurrent.h"

#include <gtest/gtest.h>

#include "stretto/nn/functional.h"
#include "stretto/nn/sequence_dropout.h"

namespace stretto::nn {
namespace {

// Sequences of these lengths and two rows of padding.
Batch recurrent_batch(const std::vector<int64_t>& lengths) {
  Batch batch;
  std::vector<int64_t> bounds = {0}, positions, samples;
  for (size_t i = 0; i < lengths.size(); ++i) {
    bounds.push_back(bounds.back() + lengths[i]);
    for (int64_t t = 0; t < lengths[i]; ++t) {
      positions.push_back(t);
      samples.push_back(static_cast<int64_t>(10 + i));
    }
  }
  for (int i = 0; i < 2; ++i) {
    positions.push_back(0);
    samples.push_back(10);
  }
  batch.tensors = {{"cu_seqlens", at::tensor(bounds)},
                   {"position_ids", at::tensor(positions)},
                   {"samples", at::tensor(samples)}};
  batch.count = std::ssize(lengths);
  return batch;
}

void fill_randomly(const torch::nn::Module& module) {
  at::manual_seed(3);
  at::NoGradGuard no_grad;
  for (const Tensor& parameter : module.parameters()) parameter.normal_(0, 0.5);
}

class RecurrentCells : public ::testing::TestWithParam<std::tuple<RecurrentOptions::Cell, bool, int64_t>> {};

// Each sequence gives the same result as torch's layer on that sequence alone, forward and backward.
TEST_P(RecurrentCells, PackedSequencesEqualTorchOnEachAlone) {
  const auto& [cell, bidirectional, layers] = GetParam();
  Recurrent layer({.cell = cell, .input = 5, .hidden = 4, .layers = layers, .bidirectional = bidirectional});
  layer.to(at::kDouble);
  fill_randomly(layer);
  const std::vector<int64_t> lengths = {2, 5, 1, 5, 3};
  const PackedLayout layout(recurrent_batch(lengths));
  const Tensor x = at::randn({18, 5}, at::kDouble).requires_grad_();
  const Tensor gradient = at::randn({18, layer.width()}, at::kDouble);
  const Tensor y = layer.forward(x, layout, {});
  EXPECT_EQ(y.slice(0, 16).abs().max().item<double>(), 0) << "padding";
  y.backward(gradient);
  std::vector<Tensor> found = {x.grad().clone()};
  for (const Tensor& parameter : layer.parameters()) found.push_back(parameter.grad().clone());
  x.mutable_grad() = Tensor();
  layer.zero_grad();
  const std::vector<Tensor> weights = layer.parameters();
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    const Tensor own = x.slice(0, begin, begin + length).unsqueeze(1);
    const Tensor zeros = at::zeros({layers * (bidirectional ? 2 : 1), 1, 4}, at::kDouble);
    const Tensor wanted =
        cell == RecurrentOptions::Cell::lstm
            ? std::get<0>(
                  at::lstm(own, {zeros, zeros}, weights, true, layers, 0.0, true, bidirectional, false))
            : std::get<0>(at::gru(own, zeros, weights, true, layers, 0.0, true, bidirectional, false));
    EXPECT_TRUE(at::allclose(y.slice(0, begin, begin + length), wanted.squeeze(1), 1e-12, 1e-14));
    wanted.squeeze(1).backward(gradient.slice(0, begin, begin + length));
    begin += length;
  }
  EXPECT_TRUE(at::allclose(found[0], x.grad(), 1e-11, 1e-13));
  for (size_t i = 0; i < weights.size(); ++i)
    EXPECT_TRUE(at::allclose(found[i + 1], weights[i].grad(), 1e-11, 1e-13)) << "parameter " << i;
}

INSTANTIATE_TEST_SUITE_P(All, RecurrentCells,
                         ::testing::Combine(::testing::Values(RecurrentOptions::Cell::lstm,
                                                              RecurrentOptions::Cell::gru),
                                            ::testing::Bool(), ::testing::Values(1, 2)));

TEST(Recurrent, LastStatesAreAtBothEnds) {
  Recurrent layer({.input = 5, .hidden = 4});
  layer.to(at::kDouble);
  fill_randomly(layer);
  const Tensor x = at::randn({7, 5}, at::kDouble), bounds = at::tensor({0, 0, 3, 7, 7}, at::kLong);
  const Tensor found = layer.last_states(x, bounds);
  ASSERT_EQ(found.sizes(), at::IntArrayRef({4, 8}));
  EXPECT_EQ(found[0].abs().max().item<double>(), 0);
  EXPECT_EQ(found[3].abs().max().item<double>(), 0);
  const PackedLayout layout(recurrent_batch({3, 4}));
  const Tensor rows = layer.forward(at::cat({x, at::zeros({2, 5}, at::kDouble)}), layout, {});
  EXPECT_TRUE(at::equal(found[1].slice(0, 0, 4), rows[2].slice(0, 0, 4))) << "forward: after the last row";
  EXPECT_TRUE(at::equal(found[1].slice(0, 4), rows[0].slice(0, 4))) << "backward: after the first row";
  EXPECT_TRUE(at::equal(found[2].slice(0, 0, 4), rows[6].slice(0, 0, 4)));
  EXPECT_EQ(layer.last_states(at::zeros({0, 5}, at::kDouble), at::tensor({0, 0}, at::kLong)).size(0), 1);
}

// A sample gets the same masks in any packing. Locked dropout: all its rows have the same mask. Word dropout:
// whole rows are zero, the others are not scaled.
TEST(SequenceDropout, MasksAreKeyedBySample) {
  const Context context = {.training = true, .key = 9};
  const PackedLayout layout(recurrent_batch({4, 3, 6}));
  Batch alone = recurrent_batch({3});
  alone.tensors["samples"] = at::full({5}, 11, at::kLong);
  const PackedLayout own(alone);
  const Tensor x = at::ones({15, 64}, at::kDouble);
  const Tensor locked = locked_dropout(x, 0.5, 2, layout, context);
  EXPECT_TRUE(at::equal(locked[4], locked[6])) << "one sequence";
  EXPECT_FALSE(at::equal(locked[3], locked[4])) << "two sequences";
  EXPECT_TRUE(at::equal(locked.slice(0, 4, 7),
                        locked_dropout(at::ones({5, 64}, at::kDouble), 0.5, 2, own, context).slice(0, 0, 3)));
  EXPECT_NEAR(locked.slice(0, 0, 13).mean().item<double>(), 1, 0.3);
  EXPECT_EQ(locked.max().item<double>(), 2);
  const Tensor words = word_dropout(x, 0.5, 3, layout, context);
  EXPECT_TRUE(at::equal(words.amin(1), words.amax(1))) << "whole rows";
  EXPECT_EQ(words.max().item<double>(), 1);
  EXPECT_EQ(words.min().item<double>(), 0);
  EXPECT_TRUE(at::equal(locked_dropout(x, 0.5, 2, layout, {}), x)) << "not in training";
  EXPECT_TRUE(at::equal(word_dropout(x, 0.5, 2, layout, {}), x));
}

}  // namespace
}  // namespace stretto::nn
