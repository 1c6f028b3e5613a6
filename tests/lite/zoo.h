#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim.h>
#include <torch/utils.h>

#include "stretto/stretto.h"

// A model with every kind of parameter, and batches that cannot be divided evenly.
namespace stretto {

struct Rows {
  Tensor ids;      // [B]
  Tensor inputs;   // [B, 4]
  Tensor targets;  // [B, 4]
};
inline auto lite_fields(Rows& rows) { return std::tie(rows.ids, rows.inputs, rows.targets); }

struct ZooImpl : torch::nn::Module {
  explicit ZooImpl(bool sparse) {
    table = register_module("table", torch::nn::Embedding(torch::nn::EmbeddingOptions(10, 4).sparse(sparse)));
    twice = register_module("twice", torch::nn::Linear(4, 4));
    tied = register_parameter("tied", twice->weight);
    unused = register_module("unused", torch::nn::Linear(4, 4));
    frozen = register_module("frozen", torch::nn::Linear(4, 4));
    for (Tensor& parameter : frozen->parameters()) parameter.requires_grad_(false);
    order = register_parameter("order", at::arange(4), /*requires_grad=*/false);
    calls = register_buffer("calls", at::zeros({}, at::kLong));
    for (Tensor& parameter : parameters()) {
      if (parameter.is_floating_point()) parameter.set_data(parameter.to(at::kDouble));
    }
  }
  // A forward with two inputs and two outputs.
  std::pair<Tensor, Tensor> forward(const Tensor& ids, const Tensor& inputs) {
    calls += 1;
    const Tensor x = at::tanh(twice->forward(table->forward(ids) + inputs));
    const Tensor y = frozen->forward(at::linear(twice->forward(x), tied));
    return {y.index_select(1, order), x.square().mean(1)};
  }
  torch::nn::Embedding table{nullptr};
  torch::nn::Linear twice{nullptr}, unused{nullptr}, frozen{nullptr};
  Tensor tied, order, calls;
};
TORCH_MODULE(Zoo);

inline Tensor mean_loss(Zoo model, const Rows& rows) {
  const auto [y, penalty] = model->forward(rows.ids, rows.inputs);
  return (y - rows.targets).square().mean() + penalty.mean();
}
// The sum over rows; each row counts once.
inline Loss summed_loss(Zoo model, const Rows& rows) {
  const auto [y, penalty] = model->forward(rows.ids, rows.inputs);
  return {(y - rows.targets).square().mean(1).sum() + penalty.sum(), static_cast<double>(rows.ids.size(0))};
}

// The last batch has fewer samples than there are ranks.
inline std::vector<Rows> make_rows(const std::vector<int64_t>& sizes = {6, 5, 4, 7, 1}) {
  const at::Generator random = at::detail::createCPUGenerator(11);
  std::vector<Rows> batches;
  for (const int64_t size : sizes) {
    batches.push_back({at::randint(10, {size}, random, at::kLong), at::randn({size, 4}, random, at::kDouble),
                       at::randn({size, 4}, random, at::kDouble)});
  }
  return batches;
}

// The model for Lite, whose embedding has sparse gradients.
inline Zoo make_zoo() {
  torch::manual_seed(3);
  const bool sparse = true;
  return Zoo(sparse);
}
// The model for a plain loop, with dense gradients: most of torch's optimizers do not accept sparse ones.
inline Zoo make_plain_zoo() {
  torch::manual_seed(3);
  const bool sparse = false;
  return Zoo(sparse);
}

// Returns each parameter once, even if it has two names.
inline std::vector<Tensor> parameters_of(Zoo& zoo) {
  std::vector<Tensor> unique;
  for (const Tensor& parameter : zoo->parameters()) {
    const auto same = [&](const Tensor& other) { return other.is_same(parameter); };
    if (std::ranges::none_of(unique, same)) unique.push_back(parameter);
  }
  return unique;
}

// The largest difference between two models' parameters.
inline double difference(const torch::nn::Module& one, const torch::nn::Module& other) {
  double largest = 0;
  const auto left = one.named_parameters(), right = other.named_parameters();
  for (const auto& item : left) {
    const Tensor distance = (item.value() - right[item.key()]).abs().max();
    largest = std::max(largest, distance.item<double>());
  }
  return largest;
}

inline void expect(bool condition, const std::string& what) {
  if (!condition) throw Error("{}", what);
}
inline void expect_equal(const torch::nn::Module& lite, const torch::nn::Module& plain,
                         double tolerance = 1e-12) {
  const double distance = difference(lite, plain);
  expect(distance < tolerance, fmt::format("the plain loop's parameters are others: {}", distance));
}

}  // namespace stretto
