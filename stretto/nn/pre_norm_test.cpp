#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>

#include "stretto/nn/counted_memory_fixture.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/packed_fixture.h"
#include "stretto/nn/rotary.h"

// Tests the functions of pre-norm layers: stretto's kernels and ATen's operators give equal results and
// gradients, which also equal the composition of simpler functions.
namespace stretto::nn {
namespace {

Tensor leaf_of(at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble).requires_grad_(); }

// Returns the output of function(context) and the gradients of the defined leaves, for each kind of kernel. A
// first backward pass keeps the graph, whose gradients must equal those of the second.
template <class Function>
std::vector<std::vector<Tensor>> with_both_kernels(const std::vector<Tensor>& leaves,
                                                   const Function& function, bool training = true) {
  std::vector<Tensor> used;
  for (const Tensor& leaf : leaves)
    if (leaf.defined()) used.push_back(leaf);
  std::vector<std::vector<Tensor>> results;
  for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
    const Tensor y = function(Context{.training = training, .key = 5, .kernels = kernels});
    const std::vector<Tensor> of_y = {at::cos(y.detach())};
    const auto first = torch::autograd::grad({y}, used, of_y, /*retain_graph=*/true);
    results.push_back(torch::autograd::grad({y}, used, of_y));
    for (size_t i = 0; i < used.size(); ++i) EXPECT_TRUE(at::equal(results.back()[i], first[i])) << i;
    results.back().push_back(y.detach());
  }
  return results;
}

void expect_close(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_TRUE(at::allclose(found[i], wanted[i], 1e-10, 1e-11)) << i;
}

struct ResidualCase {
  bool in_bias, factor, out_bias, transposed;
  double p;
};

class Residual : public ::testing::TestWithParam<ResidualCase> {};

TEST_P(Residual, EqualsItsParts) {
  const auto& [in_bias, has_factor, out_bias, transposed, p] = GetParam();
  at::manual_seed(1);
  const PackedLayout layout(packed_batch_of({3, 1, 4}));
  const auto map = [&, t = transposed](int64_t in, int64_t out, bool bias) -> Affine {
    return {t ? leaf_of({in, out}) : leaf_of({out, in}), bias ? leaf_of({out}) : Tensor(), t};
  };
  const Tensor x = leaf_of({8, 6}), residual = leaf_of({8, 6});
  const NormParameters norm_of_x = {leaf_of({6}), in_bias ? leaf_of({6}) : Tensor(), 1e-3};
  const Gate gate = {map(6, 10, in_bias), Activation::silu, has_factor ? map(6, 10, in_bias) : Affine{}};
  const Affine out = map(10, 6, out_bias), short_out = map(6, 6, out_bias);
  const std::vector<Tensor> leaves = {x,
                                      norm_of_x.weight,
                                      norm_of_x.bias,
                                      gate.in.weight,
                                      gate.in.bias,
                                      gate.factor.weight,
                                      gate.factor.bias,
                                      out.weight,
                                      out.bias};
  const auto mlp = with_both_kernels(leaves, [&](const Context& context) {
    return norm_mlp_dropout_add(x, norm_of_x, gate, out, p, 7, layout, context);
  });
  expect_close(mlp[0], mlp[1]);
  const auto linear =
      with_both_kernels({x, residual, short_out.weight, short_out.bias}, [&](const Context& context) {
        return linear_dropout_add(x, short_out, residual, p, 7, layout, context);
      });
  expect_close(linear[0], linear[1]);
  const auto plain = [](const Tensor& rows, const Affine& with) {
    return at::linear(rows, with.transposed ? with.weight.t() : with.weight, with.bias);
  };
  const Tensor normed = norm(x, norm_of_x);
  Tensor middle = at::silu(plain(normed, gate.in));
  if (has_factor) middle = middle * plain(normed, gate.factor);
  const Tensor kept = dropout(at::ones({8, 6}, at::kDouble), p, 7, layout, {.training = true, .key = 5});
  EXPECT_TRUE(at::allclose(mlp[0].back(), x + plain(middle, out) * kept));
  EXPECT_TRUE(at::allclose(linear[0].back(), residual + plain(x, short_out) * kept));
  EXPECT_EQ(kept.eq(0).any().item<bool>(), p > 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, Residual,
                         ::testing::Values(ResidualCase{true, false, true, true, 0.3},
                                           ResidualCase{true, false, true, true, 0},
                                           ResidualCase{false, true, false, false, 0},
                                           ResidualCase{true, true, true, false, 0.3},
                                           ResidualCase{false, false, true, false, 0.3}));

TEST(Norm, EqualsLayerNormAndRmsNorm) {
  const Tensor x = leaf_of({8, 6}), weight = leaf_of({6}), bias = leaf_of({6});
  const auto layer = with_both_kernels({x, weight, bias}, [&](const Context& c) {
    return norm(x, {weight, bias, 1e-3}, c);
  });
  expect_close(layer[0], layer[1]);
  EXPECT_TRUE(at::allclose(layer[0].back(), at::layer_norm(x, {6}, weight, bias, 1e-3)));
  const auto rms = with_both_kernels({x, weight}, [&](const Context& c) {
    return norm(x, {weight, {}, 1e-3}, c);
  });
  expect_close(rms[0], rms[1]);
  EXPECT_TRUE(at::allclose(rms[0].back(), at::rms_norm(x, {6}, weight, 1e-3)));
}

TEST(Norm, IsNotKeptForBackwardBeforeLinearMaps) {
  const Tensor x = leaf_of({4096, 64}), weight = leaf_of({64}), map = leaf_of({1, 64});
  CountedMemory memory;
  const Tensor kept = linears(norm(x, {weight, {}, 1e-3}), {{map, {}}})[0];
  EXPECT_GE(memory.bytes(), x.nbytes());
  const size_t before = memory.bytes();
  const Tensor y = norm_linears(x, {weight, {}, 1e-3}, {{map, {}}})[0];
  EXPECT_LT(memory.bytes() - before, x.nbytes() / 8);
  EXPECT_TRUE(at::equal(y, kept));
}

// The backward pass of an MLP needs memory for the gradient of the activated rows alone.
TEST(Mlp, ResultsOfBackwardReplaceItsInputs) {
  const PackedLayout layout(packed_batch_of({4096}));
  const Tensor x = leaf_of({4096, 8}), weight = leaf_of({8});
  const Gate gate = {{leaf_of({64, 8}), {}}, Activation::silu, {leaf_of({64, 8}), {}}};
  CountedMemory memory;
  const Tensor y =
      norm_mlp_dropout_add(x, {weight, {}, 1e-3}, gate, {leaf_of({8, 64}), {}}, 0, 7, layout, {});
  const size_t before = memory.bytes(), activated = 8 * x.nbytes();
  EXPECT_GE(before, 2 * activated);
  const auto gradients = torch::autograd::grad({y.sum()}, {x, gate.in.weight, gate.factor.weight});
  EXPECT_LT(memory.most() - before, activated * 3 / 2);
}

// The gradient of a transposed weight is added to its buffer, which has the transposed layout.
TEST(Linear, ATransposedWeightAddsToItsBuffer) {
  Linear plain(3, 4), turned(3, 4, {.bias = false, .transposed = true});
  plain.weight.detach().normal_();
  turned.weight.detach().copy_(plain.weight.t());
  EXPECT_FALSE(turned.bias.defined());
  EXPECT_EQ(turned.named_parameters().size(), 1);
  const Tensor x = at::randn({5, 3}), buffer = at::ones({3, 4});
  turned.weight.mutable_grad() = buffer;
  const Tensor y = turned.forward(x);
  EXPECT_TRUE(at::allclose(y, at::linear(x, plain.weight)));
  y.square().sum().backward();
  at::linear(x, plain.weight).square().sum().backward();
  EXPECT_TRUE(turned.weight.grad().is_same(buffer));
  EXPECT_TRUE(at::allclose(buffer - 1, plain.weight.grad().t()));
}

// Queries, keys and values are columns of one tensor, which gets one gradient.
TEST(Attention, OneTensorEqualsThreeTensors) {
  const PackedLayout layout(packed_batch_of({3, 1, 4}));
  const Tensor qkv = leaf_of({8, 3 * 2 * 5});
  const AttentionRule rule = {.causal = true, .window = 3, .scale = 0.3};
  const auto joined = with_both_kernels(
      {qkv}, [&](const Context& context) { return joined_attention(qkv, 2, layout, 0.2, 1, context, rule); });
  expect_close(joined[0], joined[1]);
  const auto parts = with_both_kernels({qkv}, [&](const Context& context) {
    const auto columns = [&](int64_t part) {
      return qkv.slice(1, part * 10, part * 10 + 10).view({8, 2, 5});
    };
    return packed_attention(columns(0), columns(1), columns(2), layout, layout, 0.2, 1, context, rule);
  });
  expect_close(joined[0], parts[0]);
}

TEST(Rotary, RotatesRowsWithBothKernels) {
  const Tensor x = leaf_of({8, 2, 6}), angles = at::randn({8, 2}, at::kDouble);
  const Rotation rotation = {angles.cos(), angles.sin()};
  const auto turned =
      with_both_kernels({x}, [&](const Context& context) { return rotate(x, rotation, context); });
  expect_close(turned[0], turned[1]);
  EXPECT_TRUE(at::allclose(turned[0].back().slice(2, 4), x.slice(2, 4)));
  EXPECT_TRUE(rotate(x, {}, {}).is_same(x));
}

}  // namespace
}  // namespace stretto::nn
