#include "stretto/nn/functional.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/kernels/dropout.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/packed_fixture.h"
#include "stretto/nn/row_observer.h"

namespace stretto::nn {
namespace {

using ::testing::ElementsAre;

Tensor random(at::IntArrayRef sizes, bool trained = true) {
  return at::randn(sizes, at::kDouble).requires_grad_(trained);
}

struct MlpCase {
  bool in_bias, out_bias, x_trained, weights_trained;
};

class Mlp : public ::testing::TestWithParam<MlpCase> {};

// The activation is recomputed in the backward pass; the gradients equal those of the reference, which keeps
// it.
TEST_P(Mlp, EqualsReferenceForwardAndBackward) {
  const MlpCase& wanted = GetParam();
  at::manual_seed(1);
  const PackedLayout layout(packed_batch_of({3, 1, 4}));
  const Tensor x = random({8, 6}, wanted.x_trained);
  const Affine in = {random({10, 6}, wanted.weights_trained), wanted.in_bias ? random({10}) : Tensor()};
  const Affine out = {random({6, 10}, wanted.weights_trained), wanted.out_bias ? random({6}) : Tensor()};
  const NormParameters norm = {random({6}), random({6}), 1e-5};
  const Tensor grad = at::randn({8, 6}, at::kDouble);
  std::vector<std::vector<Tensor>> gradients;
  std::vector<Tensor> outputs;
  for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
    const Context context = {.training = true, .key = 5, .kernels = kernels};
    outputs.push_back(mlp_dropout_add_norm(x, in, Activation::gelu, out, norm, 0.3, 7, layout, context));
    outputs.back().backward(grad);
    gradients.emplace_back();
    for (const Tensor& leaf : {x, in.weight, in.bias, out.weight, out.bias, norm.weight, norm.bias}) {
      if (!leaf.defined() || !leaf.requires_grad()) continue;
      ASSERT_TRUE(leaf.grad().defined());
      gradients.back().push_back(leaf.grad().clone());
      leaf.mutable_grad().reset();
    }
  }
  EXPECT_TRUE(at::allclose(outputs[0], outputs[1], 1e-12, 1e-12));
  for (size_t i = 0; i < gradients[0].size(); ++i)
    EXPECT_TRUE(at::allclose(gradients[0][i], gradients[1][i], 1e-10, 1e-11)) << i;
}

INSTANTIATE_TEST_SUITE_P(Cases, Mlp,
                         ::testing::Values(MlpCase{true, true, true, true}, MlpCase{false, true, true, true},
                                           MlpCase{true, false, true, true},
                                           MlpCase{false, false, true, true},
                                           MlpCase{true, true, false, true},
                                           MlpCase{true, true, false, false}));

TEST(Linear, MapsWithAndWithoutBiasAreFused) {
  const Tensor x = random({4, 3}), a = random({5, 3}), b = random({5}), c = random({2, 3});
  const auto outputs = linears(x, {{a, b}, {c, {}}});
  EXPECT_TRUE(at::allclose(outputs[0], at::linear(x, a, b)));
  EXPECT_TRUE(at::allclose(outputs[1], at::linear(x, c)));
  (outputs[0].sum() + outputs[1].sum()).backward();
  EXPECT_TRUE(at::allclose(b.grad(), at::full({5}, 4.0, at::kDouble)));
  EXPECT_TRUE(at::allclose(c.grad(), x.detach().sum(0).expand({2, 3})));
}

struct Seen : RowObserver {
  void will_read(const Tensor& ids) override {
    read.emplace_back(ids.const_data_ptr<int64_t>(), ids.const_data_ptr<int64_t>() + ids.numel());
  }
  void got_gradient(const Tensor& ids) override {
    changed.emplace_back(ids.const_data_ptr<int64_t>(), ids.const_data_ptr<int64_t>() + ids.numel());
  }
  std::vector<std::vector<int64_t>> read, changed;
};

// The ids may have any memory layout; both kernels notify.
TEST(Embedding, NotifiesOfTheRowsItUses) {
  const Tensor table = random({9, 2});
  const Tensor pairs = at::tensor({7, 0, 3, 0, 3, 0}, at::kLong).view({3, 2});
  for (const Kernels kernels : {Kernels::fast, Kernels::reference}) {
    for (const Tensor& ids : {pairs.select(1, 0), pairs.select(1, 0).to(at::kInt)}) {
      Seen seen;
      const auto hook = std::make_shared<RowHook>();
      hook->observer = &seen;
      const Tensor rows = embedding_sum({{ids, table, hook}}, {.kernels = kernels});
      EXPECT_TRUE(at::equal(rows, table.index_select(0, at::tensor({7, 3, 3}, at::kLong))));
      rows.sum().backward();
      EXPECT_THAT(seen.read, ElementsAre(ElementsAre(7, 3, 3)));
      EXPECT_THAT(seen.changed, ElementsAre(ElementsAre(7, 3, 3)));
      EXPECT_EQ(table.grad().sum(1).eq(0).sum().item<int64_t>(), 7);
      table.mutable_grad().reset();
    }
  }
}

// An engine may be destroyed between forward and backward.
TEST(Embedding, ADestroyedObserverIsNotNotified) {
  Embedding layer(3, 2);
  Seen seen;
  layer.hook->observer = &seen;
  const Tensor rows = layer.forward(at::tensor({2, 0}, at::kLong));
  layer.hook->observer = nullptr;
  rows.sum().backward();
  EXPECT_THAT(seen.read, ElementsAre(ElementsAre(2, 0)));
  EXPECT_TRUE(seen.changed.empty());
}

TEST(Embedding, MismatchesAreRefused) {
  const Tensor table = random({9, 2}), ids = at::tensor({1, 2, 3}, at::kLong);
  EXPECT_THAT(message_of([&] { nn::embedding(at::tensor({9}, at::kLong), table); }),
              has_all("id 9 is out of range", "table of 9 rows"));
  EXPECT_THAT(message_of([&] {
                nn::embedding(ids.view({3, 1}), table);
              }),
              has_all("found ids [3, 1] Long and table [9, 2] Double; expected"));
  EXPECT_THAT(message_of([&] { nn::embedding(ids.to(at::kDouble), table); }),
              has_all("expected integers [T] and a table [V, H]"));
  EXPECT_THAT(message_of([&] {
                embedding_sum({{ids, table}, {ids.slice(0, 1), table}});
              }),
              has_all("same T, H and dtype", "lookups of a sum"));
  EXPECT_THAT(message_of([&] {
                embedding_sum({{ids, table}, {ids, random({9, 3})}});
              }),
              has_all("same T, H and dtype", "lookups of a sum"));
}

TEST(Dropout, InvalidProbabilitiesAreRefused) {
  Context context;
  context.training = true;
  for (const double p : {-0.1, 1.0, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(context.dropout(p, 1), ConfigError) << p;
  }
  EXPECT_EQ(context.dropout(0.5, 1).p, 0.5);
}

TEST(CrossEntropy, WrongLabelsAreRefused) {
  const Tensor logits = random({2, 3});
  EXPECT_THAT(message_of([&] {
                cross_entropy(logits, at::tensor({0, 3}, at::kLong));
              }),
              has_all("label 3 is not one of 3 classes"));
  EXPECT_THAT(message_of([&] {
                cross_entropy(logits, at::tensor({0, -1}, at::kLong));
              }),
              has_all("label -1 is not one of"));
  EXPECT_THAT(message_of([&] {
                cross_entropy(logits, at::tensor({0., 1.}, at::kDouble));
              }),
              has_all("[N] int64"));
  EXPECT_EQ(cross_entropy(logits, at::tensor({-100, 1}, at::kLong)).count, 1);
}

}  // namespace
}  // namespace stretto::nn
