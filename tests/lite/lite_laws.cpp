#include <cstdio>
#include <functional>
#include <iostream>
#include <map>

#include "zoo.h"
#include <unistd.h>

#include <torch/data.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/utils/clip_grad.h>

#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/kernels/matmul/matmul.h"
#include "stretto/nn/layers.h"

// Lite on any number of ranks gives the results of a plain libtorch loop on one rank: each case runs both in
// the same process and throws if they differ.
//
//   lite_laws CASE RANKS [FOLDER]
namespace stretto {
namespace {

namespace optim = torch::optim;
using Case = std::function<void(const LiteOptions&, const std::string& folder)>;

LiteOptions fp64(LiteOptions options) {
  options.precision = "fp64";
  return options;
}

// Trains both models for two epochs; `make` constructs the torch optimizer of a model.
template <class Make>
void compare_optimizer(Lite& lite, const Make& make) {
  Zoo plain = make_plain_zoo(), zoo = make_zoo();
  std::vector<Rows> batches = make_rows();
  auto plain_optimizer = make(plain);
  auto [model, optimizer] = lite.setup(zoo, make(zoo));
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Rows& rows : batches) {
      plain_optimizer.zero_grad();
      mean_loss(plain, rows).backward();
      plain_optimizer.step();
    }
    for (auto& rows : lite.setup(batches)) {
      optimizer.zero_grad();
      lite.backward(mean_loss(model, rows));
      optimizer.step();
    }
  }
  expect_equal(*model, *plain);
  expect(model->unused->weight.equal(plain->unused->weight), "an unused parameter was changed");
}

void torch_optimizers(const LiteOptions& options, const std::string&) {
  Lite lite(fp64(options));
  compare_optimizer(lite, [](Zoo& zoo) {
    return optim::SGD(parameters_of(zoo), optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.1));
  });
  compare_optimizer(lite, [](Zoo& zoo) {
    return optim::AdamW(parameters_of(zoo), optim::AdamWOptions(0.05).weight_decay(0.1));
  });
  compare_optimizer(lite, [](Zoo& zoo) {
    return optim::RMSprop(parameters_of(zoo), optim::RMSpropOptions(0.01).momentum(0.5));
  });
  compare_optimizer(lite,
                    [](Zoo& zoo) { return optim::Adagrad(parameters_of(zoo), optim::AdagradOptions(0.1)); });
}

// Tests stretto's optimizer, set_lr, clipping, and the return value of backward.
void own_optimizer(const LiteOptions& options, const std::string&) {
  Lite lite(fp64(options));
  Zoo plain = make_plain_zoo();
  std::vector<Rows> batches = make_rows();
  optim::SGD plain_optimizer(parameters_of(plain), optim::SGDOptions(0.1).momentum(0.9));
  auto [model, optimizer] = lite.setup(make_zoo(), stretto::optim::sgd({.lr = 0.1, .momentum = 0.9}));
  std::vector<double> losses, norms;
  for (const Rows& rows : batches) {
    plain_optimizer.zero_grad();
    const Tensor loss = mean_loss(plain, rows);
    loss.backward();
    losses.push_back(loss.item<double>());
    norms.push_back(torch::nn::utils::clip_grad_norm_(parameters_of(plain), 0.5));
    plain_optimizer.step();
    plain_optimizer.param_groups()[0].options().set_lr(0.05);
  }
  size_t step = 0;
  for (auto& rows : lite.setup(batches)) {
    optimizer.zero_grad();
    const double loss = lite.backward(mean_loss(model, rows));
    expect(std::abs(loss - losses[step]) < 1e-12, "backward returned another loss");
    expect(std::abs(lite.clip_gradients(model, {.max_norm = 0.5}) - norms[step]) < 1e-12, "another norm");
    optimizer.step();
    optimizer.set_lr(0.05);
    ++step;
  }
  expect_equal(*model, *plain);
}

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

// Tests sums with counts over several backwards per step: all samples of a step have the same weight.
void accumulated_sums(const LiteOptions& options, const std::string&) {
  Lite lite(fp64(options));
  Zoo plain = make_plain_zoo();
  std::vector<Rows> batches = make_rows({6, 3, 5, 1});
  optim::SGD plain_optimizer(parameters_of(plain), 0.1);
  auto [model, optimizer] = lite.setup(make_zoo(), stretto::optim::sgd({.lr = 0.1}));
  for (size_t i = 0; i < batches.size(); i += 2) {
    plain_optimizer.zero_grad();
    Loss first = summed_loss(plain, batches[i]), second = summed_loss(plain, batches[i + 1]);
    ((first.sum + second.sum) / (first.count + second.count)).backward();
    plain_optimizer.step();
  }
  bool last = false;
  for (auto& rows : lite.setup(batches)) {
    {
      const auto guard = lite.no_backward_sync(!last);
      lite.backward(summed_loss(model, rows));
    }
    if (last) {
      optimizer.step();
      optimizer.zero_grad();
    }
    last = !last;
  }
  expect_equal(*model, *plain);
}

// Means accumulate as in torch, with and without a reduction in between.
void accumulated_means(const LiteOptions& options, const std::string&) {
  Lite lite(fp64(options));
  for (const bool exchanges : {false, true}) {
    Zoo plain = make_plain_zoo();
    std::vector<Rows> batches = make_rows({6, 3, 5, 1});
    optim::AdamW plain_optimizer(parameters_of(plain), 0.1);
    Zoo zoo = make_zoo();
    optim::AdamW zoo_optimizer(parameters_of(zoo), 0.1);
    auto [model, optimizer] = lite.setup(zoo, zoo_optimizer);
    for (size_t i = 0; i < batches.size(); ++i) {
      (mean_loss(plain, batches[i]) / 2).backward();
      if (i % 2 == 0) continue;
      plain_optimizer.step();
      plain_optimizer.zero_grad();
    }
    bool last = false;
    for (auto& rows : lite.setup(batches)) {
      {
        const auto guard = lite.no_backward_sync(!last && !exchanges);
        lite.backward(mean_loss(model, rows) / 2);
      }
      if (last) {
        optimizer.step();
        optimizer.zero_grad();
      }
      last = !last;
    }
    expect_equal(*model, *plain);
  }
}

// The program keeps calling its own torch optimizer, whose zero_grad() resets gradients.
void own_zero_grad(const LiteOptions& options, const std::string&) {
  Lite lite(fp64(options));
  Zoo plain = make_plain_zoo(), zoo = make_zoo();
  std::vector<Rows> batches = make_rows();
  optim::SGD plain_optimizer(parameters_of(plain), 0.1), optimizer(parameters_of(zoo), 0.1);
  lite.setup(zoo, optimizer);
  for (const Rows& rows : batches) {
    plain_optimizer.zero_grad();
    mean_loss(plain, rows).backward();
    plain_optimizer.step();
  }
  bool by_module = false;
  for (auto& rows : lite.setup(batches)) {
    by_module ? zoo->zero_grad() : optimizer.zero_grad();
    by_module = !by_module;
    lite.backward(mean_loss(zoo, rows));
    optimizer.step();
  }
  expect_equal(*zoo, *plain);
}

// Two models and two losses, one of which depends on both models.
void two_models(const LiteOptions& options, const std::string&) {
  Lite lite(fp64(options));
  Zoo plain_one = make_plain_zoo(), plain_two = make_plain_zoo();
  std::vector<Rows> batches = make_rows();
  optim::SGD first(parameters_of(plain_one), 0.1), second(parameters_of(plain_two), 0.1);
  auto [one, optimizer_one] = lite.setup(make_zoo(), stretto::optim::sgd({.lr = 0.1}));
  auto [two, optimizer_two] = lite.setup(make_zoo(), stretto::optim::sgd({.lr = 0.1}));
  const auto both = [](Zoo& a, Zoo& b, const Rows& rows) {
    const auto [y, unused] = a->forward(rows.ids, rows.inputs);
    return mean_loss(b, {rows.ids, y, rows.targets});
  };
  for (const Rows& rows : batches) {
    first.zero_grad();
    both(plain_one, plain_two, rows).backward();
    first.step();
    second.zero_grad();
    mean_loss(plain_two, rows).backward();
    second.step();
  }
  for (auto& rows : lite.setup(batches)) {
    optimizer_one.zero_grad();
    lite.backward(both(one, two, rows));
    optimizer_one.step();
    optimizer_two.zero_grad();
    lite.backward(mean_loss(two, rows));
    optimizer_two.step();
  }
  expect_equal(*one, *plain_one);
  expect_equal(*two, *plain_two);
}

// The optimizer calls the closure any number of times; all ranks must take the same decisions.
void lbfgs(const LiteOptions& options, const std::string&) {
  Lite lite(fp64(options));
  const auto make = [](Zoo& zoo) {
    std::vector<Tensor> parameters = zoo->twice->parameters();
    return optim::LBFGS(parameters, optim::LBFGSOptions(0.5).max_iter(4).line_search_fn("strong_wolfe"));
  };
  Zoo plain = make_plain_zoo(), zoo = make_zoo();
  std::vector<Rows> batches = make_rows();
  auto plain_optimizer = make(plain);
  auto [model, optimizer] = lite.setup(zoo, make(zoo));
  for (const Rows& rows : batches) {
    plain_optimizer.step([&] {
      plain->zero_grad();
      const Tensor loss = mean_loss(plain, rows);
      loss.backward();
      return loss;
    });
  }
  for (auto& rows : lite.setup(batches)) {
    optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor loss = mean_loss(model, rows);
      lite.backward(loss);
      return loss;
    });
  }
  expect_equal(*model, *plain, 1e-8);
}

// stretto's LBFGS, compared with torch's.
void own_lbfgs(const LiteOptions& options, const std::string&) {
  Lite lite(fp64(options));
  const auto make = [] {
    torch::nn::Linear layer(4, 4);
    layer->to(at::kDouble);
    at::NoGradGuard no_grad;
    for (Tensor& parameter : layer->parameters())
      parameter.copy_(at::linspace(-1, 1, parameter.numel()).view_as(parameter));
    return layer;
  };
  const auto loss_of = [](torch::nn::Linear& layer, const Rows& rows) {
    return at::mse_loss(at::tanh(layer->forward(rows.inputs)), rows.targets);
  };
  torch::nn::Linear plain = make();
  std::vector<Rows> batches = make_rows();
  optim::LBFGS plain_optimizer(
      plain->parameters(),
      optim::LBFGSOptions(0.5).max_iter(4).history_size(5).line_search_fn("strong_wolfe"));
  auto [model, optimizer] = lite.setup(
      make(),
      stretto::optim::lbfgs({.lr = 0.5, .max_iter = 4, .history_size = 5, .line_search_fn = "strong_wolfe"}));
  for (const Rows& rows : batches) {
    plain_optimizer.step([&] {
      plain_optimizer.zero_grad();
      const Tensor loss = loss_of(plain, rows);
      loss.backward();
      return loss;
    });
  }
  for (auto& rows : lite.setup(batches)) {
    optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor loss = loss_of(model, rows);
      lite.backward(loss);
      return loss;
    });
  }
  expect_equal(*model, *plain, 1e-8);
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

// Buffers are rank 0's after each step; Dropout draws different numbers on each rank.
void buffers_and_dropout(const LiteOptions& options, const std::string&) {
  Lite lite(options);
  auto norm = std::make_shared<torch::nn::BatchNorm1dImpl>(3);
  torch::nn::Sequential net(torch::nn::BatchNorm1d(norm), torch::nn::Dropout(0.5));
  auto [model, optimizer] = lite.setup(net, stretto::optim::sgd({}));
  std::vector<Tensor> batches = {at::randn({8, 3}, at::detail::createCPUGenerator(1)),
                                 at::randn({6, 3}, at::detail::createCPUGenerator(2))};
  for (auto& batch : lite.setup(batches)) {
    lite.backward(model->forward(batch).square().mean());
    optimizer.step();
  }
  const Tensor all = lite.all_gather(norm->running_mean);
  for (int rank = 1; rank < lite.world_size(); ++rank)
    expect(all[rank].equal(all[0]), "running means differ");
  const Tensor drawn = lite.all_gather(at::rand({20}));
  for (int rank = 1; rank < lite.world_size(); ++rank)
    expect(!drawn[rank].equal(drawn[0]), "equal random numbers");
}

// fp32 parameters and bf16 matmuls; outside a loop, the program uses the autocast guard.
void bf16(LiteOptions options, const std::string&) {
  options.precision = "bf16-mixed";
  Lite lite(options);
  auto [model, optimizer] = lite.setup(torch::nn::Linear(4, 4), stretto::optim::sgd({.lr = 0.1}));
  std::vector<Tensor> batches = {at::ones({4, 4}), at::ones({2, 4})};
  for (auto& batch : lite.setup(batches)) {
    const Tensor y = model->forward(batch);
    expect(y.scalar_type() == at::kBFloat16, "the product was not computed in bf16");
    lite.backward(y.square().mean());
    expect(model->weight.grad().scalar_type() == at::kFloat, "the gradient is not fp32");
    const Tensor before = model->forward(batch);
    optimizer.step();
    expect(!model->forward(batch).equal(before), "the forward used weights of before the step");
  }
  expect(model->forward(batches[0]).scalar_type() == at::kFloat, "autocast outlived the loop");
  const auto guard = lite.autocast();
  expect(model->forward(batches[0]).scalar_type() == at::kBFloat16, "the guard does nothing");
}

// Batches with one large error, whose gradient alone overflows fp16 at a scale of 8192 and not at 4096, for
// any division of the rows.
std::vector<Rows> overflowing_rows() {
  std::vector<Rows> batches = make_rows({6, 6, 6, 6, 6, 6, 6, 6});
  for (Rows& rows : batches) {
    rows.inputs = rows.inputs.to(at::kFloat);
    rows.targets = rows.targets.to(at::kFloat);
    rows.inputs[0].fill_(0.5);
    rows.targets[0].fill_(120);
  }
  return batches;
}

// The plain loop scales the loss by the operators of torch.amp.GradScaler. `make` constructs the optimizer
// for Lite.
template <class Make>
void fp16(LiteOptions options, const std::string& folder, const Make& make) {
  options.precision = "fp16";
  options.loss_scale = {.init_scale = 16'384, .growth_interval = 2};
  Lite lite(options);
  const auto make_net = [] {
    torch::manual_seed(3);
    return torch::nn::Linear(4, 4);
  };
  const auto loss_of = [](torch::nn::Linear& net, const Rows& rows) {
    const Tensor y = net->forward(rows.inputs);
    expect(y.scalar_type() == at::kHalf, "the product was not computed in fp16");
    return at::mse_loss(y.to(at::kFloat), rows.targets);
  };
  std::vector<Rows> batches = overflowing_rows();
  torch::nn::Linear plain = make_net();
  optim::SGD plain_optimizer(plain->parameters(), 1e-3);
  Tensor scale = at::full({}, options.loss_scale.init_scale, at::kFloat);
  Tensor finite_steps = at::zeros({}, at::kInt);
  std::vector<std::pair<double, bool>> expected;  // the scale of each step, and whether it was taken
  for (const Rows& rows : batches) {
    plain_optimizer.zero_grad();
    Tensor loss;
    {
      const Autocast guard(at::kCPU, at::kHalf);
      loss = loss_of(plain, rows);
    }
    (loss * scale).backward();
    std::vector<Tensor> gradients;
    for (const Tensor& parameter : plain->parameters()) gradients.push_back(parameter.grad());
    Tensor overflows = at::zeros({1});
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, overflows, scale.reciprocal());
    const bool taken = overflows.item<float>() == 0;
    expected.emplace_back(scale.item<float>(), taken);
    if (taken) plain_optimizer.step();
    at::_amp_update_scale_(scale, finite_steps, overflows, 2, 0.5, 2);
  }
  expect(expected[1] == std::pair(8192.0, false) && expected[3].second,
         "the plain loop must skip some steps");

  torch::nn::Linear net = make_net();
  auto [model, optimizer] = lite.setup(net, make(net));
  auto loader = lite.setup(batches);
  const auto train = [&, &trained = model, &stepper = optimizer] {
    std::vector<std::pair<double, bool>> steps;
    for (auto& rows : loader) {
      stepper.zero_grad();
      const double of_step = lite.loss_scale();
      lite.backward(loss_of(trained, rows));
      expect(std::isfinite(lite.clip_gradients(trained, {.max_norm = 1e9})) == (of_step < 8192), "the norm");
      steps.emplace_back(of_step, stepper.step());
    }
    return steps;
  };
  expect(train() == expected, "the steps of the plain loop had other scales, or others were skipped");
  expect_equal(*model, *plain, 1e-4);
  lite.save(folder, {.step = 1});
  const auto further = train();
  lite.load(folder);
  expect(train() == further, "the checkpoint has another loss scale");
}

void fp16_own(const LiteOptions& options, const std::string& folder) {
  fp16(options, folder, [](torch::nn::Linear&) { return stretto::optim::sgd({.lr = 1e-3}); });
}

void fp16_torch(const LiteOptions& options, const std::string& folder) {
  fp16(options, folder, [](torch::nn::Linear& net) { return optim::SGD(net->parameters(), 1e-3); });
}

void collectives(const LiteOptions& options, const std::string& folder) {
  Lite lite(options);
  const int ranks = lite.world_size(), rank = lite.global_rank();
  const Tensor own = at::full({2}, rank, at::kFloat);
  expect(lite.all_gather(own).sizes() == at::IntArrayRef({ranks, 2}), "all_gather's shape");
  expect(lite.all_reduce(own, ReduceOp::max)[0].item<float>() == static_cast<float>(ranks - 1), "max");
  expect(lite.all_reduce(static_cast<double>(rank)) == (ranks - 1) / 2.0, "the mean");
  expect(lite.broadcast(own, ranks - 1)[1].item<float>() == static_cast<float>(ranks - 1), "broadcast");
  expect(lite.broadcast(std::string("from ") + std::to_string(rank)) == "from 0", "broadcast of bytes");
  expect(own[0].item<float>() == static_cast<float>(rank), "a collective wrote to its argument");
  const auto file = std::filesystem::path(folder) / "ready";
  {
    const auto first = lite.rank_zero_first();
    if (lite.is_global_zero()) write_file_atomic(file, "");
    expect(std::filesystem::exists(file), "another rank went before rank 0");
  }
  lite.save_tensors(std::filesystem::path(folder) / "t.safetensors", {{"a", at::arange(3)}});
  expect(lite.load_tensors(std::filesystem::path(folder) / "t.safetensors").at("a").equal(at::arange(3)),
         "tensors");
}

// The matmul libraries are part of a checkpoint, as in the Trainer.
void products(const LiteOptions& options, const std::string& folder) {
  using enum kernels::MatmulLibrary;
  const bool has_onednn = kernels::is_usable(onednn, kernels::MatmulRole::forward, at::kFloat);
  const kernels::MatmulLibrary wanted = has_onednn ? onednn : aten;
  const auto in_use = [] { return kernels::matmul_in_use(at::kFloat)[kernels::MatmulRole::forward]; };
  for (const bool first : {true, false}) {
    LiteOptions own = options;
    own.products = first ? name_of(wanted) : "auto";
    Lite lite(own);
    auto [model, optimizer] =
        lite.setup(std::make_shared<nn::Linear>(8, 8), stretto::optim::sgd({.lr = 0.1}));
    expect(in_use() == (first ? wanted : aten), "setup did not choose the products");
    if (first) {
      lite.save(folder, {.step = 1});
    } else {
      lite.load(folder);
      expect(in_use() == wanted, "load did not take over the products");
    }
  }
}

// Trains one epoch, from the checkpoint in `folder` if there is one; then compares with a plain loop over all
// epochs.
template <class Make>
void train_in_parts(const LiteOptions& options, const std::string& folder, const Make& make, bool own) {
  Lite lite(fp64(options));
  Zoo plain = make_plain_zoo(), zoo = make_zoo();
  std::vector<Rows> batches = make_rows();
  auto plain_optimizer = make(plain);
  const auto train = [&](auto& model, auto& optimizer) {
    const auto extra = lite.load(folder);
    const int begin = extra ? extra->at("epoch").template get<int>() : 0;
    for (int epoch = 0; epoch <= begin; ++epoch) {
      for (const Rows& rows : batches) {
        plain_optimizer.zero_grad();
        mean_loss(plain, rows).backward();
        plain_optimizer.step();
      }
      plain_optimizer.param_groups()[0].options().set_lr(0.02);
    }
    for (auto& rows : lite.setup(batches)) {
      optimizer.zero_grad();
      lite.backward(mean_loss(model, rows));
      optimizer.step();
    }
    optimizer.set_lr(0.02);
    lite.save(folder, {.step = begin + 1, .extra = {{"epoch", begin + 1}}, .keep_last = 2});
    expect_equal(*model, *plain);
    lite.print("epoch {}", begin + 1);
  };
  if (own) {
    auto [model, optimizer] = lite.setup(zoo, stretto::optim::adamw({.lr = 0.05, .weight_decay = 0}));
    train(model, optimizer);
  } else {
    auto [model, optimizer] = lite.setup(zoo, make(zoo));
    train(model, optimizer);
  }
}

void saved_torch(const LiteOptions& options, const std::string& folder) {
  train_in_parts(
      options, folder, [](Zoo& zoo) { return optim::AdamW(parameters_of(zoo), 0.05); }, false);
}
void saved_own(const LiteOptions& options, const std::string& folder) {
  const auto make = [](Zoo& zoo) {
    return optim::AdamW(parameters_of(zoo), optim::AdamWOptions(0.05).weight_decay(0));
  };
  train_in_parts(options, folder, make, true);
}

// A scheduler of torch that is stepped after every batch: its counter continues in the middle of a period.
void saved_schedule(const LiteOptions& options, const std::string& folder) {
  Lite lite(fp64(options));
  Zoo plain = make_plain_zoo(), zoo = make_zoo();
  std::vector<Rows> batches = make_rows({4, 2, 3});
  optim::SGD plain_optimizer(parameters_of(plain), 0.1), zoo_optimizer(parameters_of(zoo), 0.1);
  optim::StepLR plain_schedule(plain_optimizer, 2, 0.5), schedule(zoo_optimizer, 2, 0.5);
  auto [model, optimizer] = lite.setup(zoo, zoo_optimizer);
  lite.register_for_checkpointing(schedule);
  const auto extra = lite.load(folder);
  const int begin = extra ? extra->at("epoch").get<int>() : 0;
  for (int epoch = 0; epoch <= begin; ++epoch) {
    for (const Rows& rows : batches) {
      plain_optimizer.zero_grad();
      mean_loss(plain, rows).backward();
      plain_optimizer.step();
      plain_schedule.step();
    }
  }
  for (auto& rows : lite.setup(batches)) {
    optimizer.zero_grad();
    lite.backward(mean_loss(model, rows));
    optimizer.step();
    schedule.step();
  }
  lite.save(folder, {.step = begin + 1, .extra = {{"epoch", begin + 1}}, .keep_last = 2});
  expect_equal(*model, *plain);
  expect(optimizer.lr() == plain_optimizer.param_groups()[0].options().get_lr(), "another learning rate");
  lite.print("epoch {}", begin + 1);
}

// Loads a checkpoint of saved_schedule without its scheduler.
void forgotten_schedule(const LiteOptions& options, const std::string& folder) {
  Lite lite(fp64(options));
  Zoo zoo = make_zoo();
  lite.setup(zoo, optim::SGD(parameters_of(zoo), 0.1));
  lite.load(folder);
}

int run(int argc, char** argv) {
  const std::map<std::string, Case> cases = {{"torch_optimizers", torch_optimizers},
                                             {"products", products},
                                             {"own_optimizer", own_optimizer},
                                             {"data_loader", data_loader},
                                             {"accumulated_sums", accumulated_sums},
                                             {"accumulated_means", accumulated_means},
                                             {"own_zero_grad", own_zero_grad},
                                             {"two_models", two_models},
                                             {"lbfgs", lbfgs},
                                             {"own_lbfgs", own_lbfgs},
                                             {"batches_of_ones_own", batches_of_ones_own},
                                             {"dataset", dataset},
                                             {"buffers_and_dropout", buffers_and_dropout},
                                             {"bf16", bf16},
                                             {"fp16_own", fp16_own},
                                             {"fp16_torch", fp16_torch},
                                             {"collectives", collectives},
                                             {"saved_torch", saved_torch},
                                             {"saved_own", saved_own},
                                             {"saved_schedule", saved_schedule},
                                             {"forgotten_schedule", forgotten_schedule}};
  LiteOptions options;
  options.devices = std::stoi(argv[2]);
  cases.at(argv[1])(options, argc > 3 ? argv[3] : "");
  return 0;
}

}  // namespace
}  // namespace stretto

int main(int argc, char** argv) {
  int code = 1;
  try {
    code = stretto::run(argc, argv);
  } catch (const std::exception& error) {
    stretto::log::error("{}", error.what());
  }
  stretto::log::flush();
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(code);  // skips libtorch's global destructors, which take 0.25 s; the examples have them
}
