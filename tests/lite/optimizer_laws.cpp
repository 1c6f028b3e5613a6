#include <cmath>

#include "laws.h"

#include <torch/nn/utils/clip_grad.h>

namespace stretto {
namespace {

namespace optim = torch::optim;

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

}  // namespace

Laws optimizer_laws() {
  return {{"torch_optimizers", torch_optimizers},
          {"own_optimizer", own_optimizer},
          {"own_zero_grad", own_zero_grad},
          {"two_models", two_models}};
}

}  // namespace stretto
