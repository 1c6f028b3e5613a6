#include "laws.h"

#include <torch/data.h>
#include <torch/nn/utils/clip_grad.h>

namespace stretto {
namespace {

namespace optim = torch::optim;

// A dataset of rows of three numbers, labelled by their sum.
struct Points : torch::data::datasets::Dataset<Points> {
  torch::data::Example<> get(size_t index) override {
    const Tensor x = at::sin(at::arange(3, at::kDouble) * 1.7 + static_cast<double>(index));
    return {x, x.sum().view(1)};
  }
  std::optional<size_t> size() const override { return 50; }
};

// Tests torch's loader with a worker thread, of which each rank reads only its samples, in torch's random
// order; torch's Adam; clipping.
void data_loader(const LiteOptions& options, const std::string&) {
  Lite lite(fp64(options));
  const auto points = [] { return Points().map(torch::data::transforms::Stack<>()); };
  const auto loading = torch::data::DataLoaderOptions(8).workers(1);
  const auto make = [] {
    torch::manual_seed(1);
    torch::nn::Linear net(3, 1);
    net->to(at::kDouble);
    return net;
  };
  torch::nn::Linear plain = make();
  auto plain_loader = torch::data::make_data_loader(points(), loading);
  optim::Adam plain_optimizer(plain->parameters(), 0.05);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : *plain_loader) {
      plain_optimizer.zero_grad();
      torch::mse_loss(plain->forward(batch.data), batch.target).backward();
      torch::nn::utils::clip_grad_norm_(plain->parameters(), 0.1);
      plain_optimizer.step();
    }
  }
  torch::nn::Linear net = make();
  auto loader = lite.make_data_loader(points(), loading);
  auto [model, optimizer] = lite.setup(net, optim::Adam(net->parameters(), 0.05));
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : loader) {
      optimizer.zero_grad();
      lite.backward(torch::mse_loss(model->forward(batch.data), batch.target));
      lite.clip_gradients(model, {.max_norm = 0.1});
      optimizer.step();
    }
  }
  expect_equal(*model, *plain);
}

// Every rank has different batches, of different sizes.
void batches_of_ones_own(const LiteOptions& options, const std::string&) {
  Lite lite(fp64(options));
  std::vector<std::vector<Rows>> of_rank;
  for (int64_t rank = 0; rank < lite.world_size(); ++rank) of_rank.push_back(make_rows({4, 2 + rank}));
  Zoo plain = make_plain_zoo();
  optim::SGD plain_optimizer(parameters_of(plain), 0.1);
  auto [model, optimizer] = lite.setup(make_zoo(), stretto::optim::sgd({.lr = 0.1}));
  for (size_t step = 0; step < 2; ++step) {
    std::vector<Tensor> ids, inputs, targets;
    for (const auto& batches : of_rank) {
      ids.push_back(batches[step].ids);
      inputs.push_back(batches[step].inputs);
      targets.push_back(batches[step].targets);
    }
    plain_optimizer.zero_grad();
    mean_loss(plain, {at::cat(ids), at::cat(inputs), at::cat(targets)}).backward();
    plain_optimizer.step();
  }
  auto& batches_of_rank = of_rank[static_cast<size_t>(lite.global_rank())];
  for (auto& rows : lite.setup(batches_of_rank, Distribute::per_rank)) {
    optimizer.zero_grad();
    lite.backward(mean_loss(model, rows));
    optimizer.step();
  }
  expect_equal(*model, *plain);
}

class Numbers : public data::Dataset {
 public:
  int64_t size() const override { return 23; }
  int32_t length_of(int64_t) const override { return 1; }
  Batch pack(std::span<const int64_t> samples) const override {
    Batch batch;
    batch.sample_ids.assign(samples.begin(), samples.end());
    batch.count = std::ssize(samples);
    batch.tensors["x"] = at::tensor(batch.sample_ids).to(at::kDouble);
    return batch;
  }
};

// A dataset of stretto: every sample occurs once per epoch, in a different order in each epoch.
void dataset(const LiteOptions& options, const std::string&) {
  Lite lite(fp64(options));
  const Numbers numbers;
  std::vector<std::vector<double>> firsts;
  for (int epoch = 0; epoch < 2; ++epoch) {
    double sum = 0, count = 0;
    std::vector<double> first;
    for (auto& batch : lite.setup(numbers, {.batch_size = 8, .seed = 5})) {
      if (first.empty()) first = {lite.all_reduce(batch.at("x").sum().item<double>(), ReduceOp::sum)};
      if (batch.count > 0) sum += batch.at("x").sum().item<double>();
      count += static_cast<double>(lite.sample_count());
    }
    expect(lite.all_reduce(sum, ReduceOp::sum) == 22 * 23 / 2.0, "not every sample was met once");
    expect(lite.all_reduce(count, ReduceOp::sum) == 23, "not every sample was counted once");
    firsts.push_back(first);
  }
  expect(firsts[0] != firsts[1], "both epochs have the same order");
}

}  // namespace

Laws data_laws() {
  return {{"data_loader", data_loader}, {"batches_of_ones_own", batches_of_ones_own}, {"dataset", dataset}};
}

}  // namespace stretto
