#include <map>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/nn/initial_values.h"
#include "stretto/nn/tensor_parallel.h"

namespace stretto::nn {
namespace {

using ::testing::HasSubstr;

// A value of which each rank has a part.
class JoinedValue {
 public:
  void add(const TensorLayout& layout, const Tensor& part) {
    const std::scoped_lock lock(mutex_);
    if (!values_.defined()) values_ = at::full(layout.global, NAN, part.options());
    const Tensor flat = values_.view({-1}), local = part.detach().contiguous().view({-1});
    for (const LocalRun& run : layout.runs()) {
      elements_ += run.elements;
      flat.slice(0, run.global, run.global + run.elements)
          .copy_(local.slice(0, run.local, run.local + run.elements));
    }
  }
  const Tensor& values() const { return values_; }
  // The number of elements that were added: more than there are for a value that each rank has whole.
  int64_t elements() const { return elements_; }

 private:
  std::mutex mutex_;
  Tensor values_;
  int64_t elements_ = 0;
};

// A table, a block with a fused map and one with a gate, and a loss over the table's rows as classes. No size
// is a multiple of 4, except the number of units of the fused map.
struct DividedNet : torch::nn::Module {
  static constexpr int64_t classes = 11, width = 6, heads = 4, head_width = 3, inner = 10;

  DividedNet(const TensorParallel& tensor_parallel, bool transposed) : ranks(tensor_parallel) {
    const LinearOptions linear = {.transposed = transposed};
    table = register_module("table", std::make_shared<VocabularyEmbedding>(classes, width, ranks));
    fused = register_module("fused", std::make_shared<ColumnLinear>(
                                         width, 3 * heads * head_width, ranks,
                                         ColumnOptions{.linear = linear, .maps = 3, .together = head_width}));
    joined = register_module(
        "joined", std::make_shared<RowLinear>(heads * head_width, width, ranks, linear, head_width));
    norm = register_module("norm", std::make_shared<LayerNormBetweenLayers>(width, 1e-5, ranks));
    up = register_module("up", std::make_shared<ColumnLinear>(width, inner, ranks, ColumnOptions{linear}));
    gate =
        register_module("gate", std::make_shared<ColumnLinear>(width, inner, ranks, ColumnOptions{linear}));
    down = register_module("down", std::make_shared<RowLinear>(inner, width, ranks, linear));
    InitialValues source(3);
    for (const LayerParameter& parameter : layer_parameters(*this))
      source.add(parameter.name, parameter.layout().global, {InitialValue::Kind::normal, 0.5});
    fill_parameters(*this, source);
  }

  Tensor states(const Tensor& ids, const PackedLayout& layout, const Context& context) const {
    const Tensor x = table->forward(ids);
    const Tensor parts = fused->forward(x);
    const int64_t size = parts.size(1) / 3;
    const Tensor mixed = parts.slice(1, 0, size) * parts.slice(1, size, 2 * size) + parts.slice(1, 2 * size);
    const Tensor middle = linear_dropout_add(mixed, joined->map(), x, 0.5, 1, layout, context);
    return norm_mlp_dropout_add(middle, norm->all(), {up->map(), Activation::silu, gate->map()}, down->map(),
                                0.5, 2, layout, context);
  }

  Loss loss(const Tensor& states, const Tensor& labels, const Context& context) const {
    if (!ranks.divides()) return linear_cross_entropy(states, table->weight, labels, context);
    return linear_cross_entropy(states, table->weight, labels, {*ranks.ranks, ranks.first(classes), classes},
                                context);
  }

  TensorParallel ranks;
  std::shared_ptr<VocabularyEmbedding> table;
  std::shared_ptr<ColumnLinear> fused, up, gate;
  std::shared_ptr<RowLinear> joined, down;
  std::shared_ptr<LayerNormBetweenLayers> norm;
};

Batch batch_of_two() {
  Batch batch;
  batch.tensors["input_ids"] = at::tensor({0, 10, 4, 4, 7, 2, 9}, at::kLong);
  batch.tensors["labels"] = at::tensor({10, 4, -100, 7, 2, 0, -100}, at::kLong);
  batch.tensors["cu_seqlens"] = at::tensor({0, 3, 7}, at::kLong);
  batch.tensors["position_ids"] = at::tensor({0, 1, 2, 0, 1, 2, 3}, at::kLong);
  batch.tensors["samples"] = at::tensor({5, 5, 5, 8, 8, 8, 8}, at::kLong);
  return batch;
}

struct LayerResults {
  std::map<std::string, JoinedValue> values, gradients;
  std::vector<Tensor> losses, states, logits;  // of each rank
};

void run_layers(int ranks, at::ScalarType dtype, bool transposed, Kernels kernels, LayerResults& results) {
  results.losses.resize(static_cast<size_t>(ranks));
  results.states.resize(static_cast<size_t>(ranks));
  results.logits.resize(static_cast<size_t>(ranks));
  comm::run_rank_threads(ranks, [&](Group& group) {
    DividedNet net(ranks == 1 ? TensorParallel{} : TensorParallel{&group}, transposed);
    net.to(dtype);
    const Batch batch = batch_of_two();
    const Context context = {.training = true, .key = 9, .kernels = kernels};
    const Tensor states = net.states(batch.at("input_ids"), PackedLayout(batch), context);
    const Loss loss = net.loss(states, batch.at("labels"), context);
    EXPECT_EQ(loss.count, 5);
    const Tensor own = linear(states, {net.table->weight, {}, false, net.ranks.ranks});
    const Tensor logits = join_columns(own, DividedNet::classes, net.ranks);
    (loss.sum + 0.1 * logits.square().sum()).backward();
    const auto rank = static_cast<size_t>(group.rank());
    results.losses[rank] = loss.sum.detach();
    results.states[rank] = states.detach();
    results.logits[rank] = logits.detach();
    static std::mutex maps;
    for (const LayerParameter& parameter : layer_parameters(net)) {
      std::unique_lock lock(maps);
      JoinedValue &values = results.values[parameter.name], &gradients = results.gradients[parameter.name];
      lock.unlock();
      values.add(parameter.layout(), parameter.tensor);
      gradients.add(parameter.layout(), parameter.tensor.grad());
    }
  });
}

double largest_difference(const Tensor& a, const Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

class ParallelLayers : public ::testing::TestWithParam<std::tuple<int, bool, Kernels>> {};

// Masks of dropout are equal too: other masks would change the results.
TEST_P(ParallelLayers, ComputeWhatWholeLayersDo) {
  const auto& [ranks, transposed, kernels] = GetParam();
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    const double tolerance = dtype == at::kDouble ? 1e-12 : 1e-5;
    LayerResults whole, parts;
    run_layers(1, dtype, transposed, kernels, whole);
    run_layers(ranks, dtype, transposed, kernels, parts);
    for (size_t rank = 0; rank < parts.losses.size(); ++rank) {
      EXPECT_LT(largest_difference(parts.losses[rank], whole.losses[0]), tolerance);
      EXPECT_LT(largest_difference(parts.states[rank], whole.states[0]), tolerance);
      EXPECT_LT(largest_difference(parts.logits[rank], whole.logits[0]), tolerance);
      EXPECT_TRUE(at::equal(parts.states[rank], parts.states[0])) << "equal on all ranks";
      EXPECT_TRUE(at::equal(parts.losses[rank], parts.losses[0]));
    }
    EXPECT_EQ(whole.values.size(), 13u);
    for (const auto& [name, value] : whole.values) {
      const JoinedValue& divided = parts.values.at(name);
      EXPECT_TRUE(at::equal(divided.values(), value.values())) << name << ": initial values";
      const bool is_copied = name == "joined.bias" || name == "down.bias" || name.starts_with("norm.");
      EXPECT_EQ(divided.elements(), (is_copied ? ranks : 1) * value.elements()) << name;
      EXPECT_LT(largest_difference(parts.gradients.at(name).values(), whole.gradients.at(name).values()),
                tolerance)
          << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ParallelLayers,
                         ::testing::Combine(::testing::Values(2, 3, 4), ::testing::Bool(),
                                            ::testing::Values(Kernels::fast, Kernels::reference)));

TEST(ParallelLayers, RowsOfARankAndOfAllRanks) {
  for (const int ranks : {1, 2, 4}) {
    comm::run_rank_threads(ranks, [&](Group& group) {
      const Tensor all = at::arange(24, at::kDouble).view({8, 3}), weights = (all + 1).square();
      const int64_t rows = 8 / ranks, rank = group.rank();
      const auto own = [&](const Tensor& x) { return x.slice(0, rank * rows, (rank + 1) * rows); };
      const auto check = [&](const Tensor& x, const Tensor& result, const Tensor& expected,
                             const Tensor& factors, const Tensor& gradient) {
        EXPECT_TRUE(at::equal(result, expected));
        (result * factors).sum().backward();
        EXPECT_TRUE(at::equal(x.grad(), gradient));
      };
      const auto leaf = [](const Tensor& x) { return x.clone().requires_grad_(); };
      Tensor x = leaf(all);
      check(x, own_rows(x, {&group, /*sequence=*/true}), own(all), own(weights), weights);
      x = leaf(own(all));
      check(x, join_rows(x, {&group, /*sequence=*/true}), all, weights, own(weights));
      x = leaf(own(all));
      check(x, join_rows_to_parts(x, group), all, weights, own(weights) * ranks);
      x = leaf(all);
      check(x, own_rows_of_sum(x, group), own(all) * ranks, own(weights), weights);
    });
  }
  comm::run_rank_threads(2, [](Group& group) {
    EXPECT_THAT(message_of<ShapeError>([&] {
                  own_rows(at::ones({3, 2}), {&group, /*sequence=*/true});
                }),
                HasSubstr("3 rows cannot be divided evenly among 2 ranks"));
    const RowLinear map(4, 2, {&group, /*sequence=*/true});
    const PackedLayout layout(batch_of_two());
    EXPECT_THAT(message_of<ShapeError>([&] {
                  linear_dropout_add(at::ones({7, 2}), map.map(), at::ones({3, 2}), 0, 0, layout, Context{});
                }),
                has_all("part of 7 rows", "each of 2 ranks (tp)"));
  });
}

TEST(ParallelLayers, AreWholeOnOneRank) {
  comm::run_rank_threads(1, [](Group& group) {
    for (const TensorParallel& ranks : {TensorParallel{}, TensorParallel{&group}}) {
      const DividedNet net(ranks, false);
      for (const LayerParameter& parameter : layer_parameters(net))
        EXPECT_TRUE(parameter.layout().cuts.empty()) << parameter.name;
      EXPECT_EQ(net.up->map().outputs_over, nullptr);
      EXPECT_EQ(net.down->map().inputs_over, nullptr);
    }
    EXPECT_TRUE(VocabularyEmbedding(4, 2, {&group}, /*sparse=*/true).sparse);
  });
}

TEST(ParallelLayers, RefuseSizesThatCannotBeDivided) {
  comm::run_rank_threads(4, [](Group& group) {
    const TensorParallel ranks = {&group};
    EXPECT_TRUE(VocabularyEmbedding(4, 2, ranks, /*sparse=*/true).sparse);
    EXPECT_THAT(message_of<ConfigError>([&] { ColumnLinear(8, 3, ranks); }),
                has_all("ColumnLinear: 3 outputs ", "among 4 ranks", "parts of 1", "at most 3"));
    EXPECT_THAT(message_of<ConfigError>([&] { ColumnLinear(8, 10, ranks, {.maps = 3}); }),
                HasSubstr("10 outputs are not 3 times a multiple of 1"));
    EXPECT_THAT(message_of<ConfigError>([&] { RowLinear(12, 4, ranks, {}, 5); }),
                HasSubstr("RowLinear: 12 inputs are not 1 times a multiple of 5"));
    EXPECT_THAT(message_of<ConfigError>([&] { VocabularyEmbedding(3, 4, ranks); }),
                HasSubstr("VocabularyEmbedding: 3 rows cannot be divided"));
    const VocabularyEmbedding table(11, 2, ranks);
    EXPECT_THAT(message_of<DataError>([&] {
                  table.forward(at::tensor({3, 11}, at::kLong));
                }),
                has_all("id 11 is out of range", "table of 11 rows"));
    const ClassesOfRank classes = {group, ranks.part(11).begin, 11};
    EXPECT_THAT(message_of<DataError>([&] {
                  linear_cross_entropy(at::zeros({1, 2}), table.weight, at::tensor({11}, at::kLong), classes);
                }),
                HasSubstr("label 11 is not one of 11 classes"));
  });
}

// Logits far apart: each rank's exponentials alone would overflow, or vanish.
TEST(ParallelLayers, CrossEntropyOfDividedClassesIsStable) {
  const Tensor x = at::tensor({30.0, -30.0}, at::kFloat).view({2, 1});
  const Tensor weight = at::arange(-5, 5, at::kFloat).view({10, 1}) * 4;
  const Tensor labels = at::tensor({0, 3}, at::kLong);
  const double expected = linear_cross_entropy(x, weight, labels).sum.item<double>();
  EXPECT_GT(expected, 1000);
  comm::run_rank_threads(2, [&](Group& group) {
    const TensorParallel ranks = {&group};
    const Range own = ranks.part(10);
    const Loss loss = linear_cross_entropy(x, weight.slice(0, own.begin, own.end).contiguous(), labels,
                                           ClassesOfRank{group, own.begin, 10});
    EXPECT_NEAR(loss.sum.item<double>() / expected, 1, 1e-6);
    const Loss none =
        linear_cross_entropy(x, weight.slice(0, own.begin, own.end).contiguous(),
                             at::full({2}, -100, at::kLong), ClassesOfRank{group, own.begin, 10});
    EXPECT_EQ(none.sum.item<double>(), 0);
    EXPECT_EQ(none.count, 0);
  });
}

}  // namespace
}  // namespace stretto::nn
