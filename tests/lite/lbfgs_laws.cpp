#include <cmath>

#include "laws.h"

namespace stretto {
namespace {

namespace optim = torch::optim;

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
  std::vector<double> losses;
  for (const Rows& rows : batches) {
    const Tensor first = plain_optimizer.step([&] {
      plain->zero_grad();
      const Tensor loss = mean_loss(plain, rows);
      loss.backward();
      return loss;
    });
    losses.push_back(first.item<double>());
  }
  auto loss_of_all = losses.begin();
  for (auto& rows : lite.setup(batches)) {
    const Tensor first = optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor loss = mean_loss(model, rows);
      lite.backward(loss);
      return loss;
    });
    expect(std::abs(first.item<double>() - *loss_of_all++) < 1e-8, "another loss of the whole batch");
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
  std::vector<double> losses;
  for (const Rows& rows : batches) {
    const Tensor first = plain_optimizer.step([&] {
      plain_optimizer.zero_grad();
      const Tensor loss = loss_of(plain, rows);
      loss.backward();
      return loss;
    });
    losses.push_back(first.item<double>());
  }
  auto loss_of_all = losses.begin();
  for (auto& rows : lite.setup(batches)) {
    const Tensor first = optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor loss = loss_of(model, rows);
      lite.backward(loss);
      return loss;
    });
    expect(std::abs(first.item<double>() - *loss_of_all++) < 1e-8, "another loss of the whole batch");
  }
  expect_equal(*model, *plain, 1e-8);
}

}  // namespace

Laws lbfgs_laws() { return {{"lbfgs", lbfgs}, {"own_lbfgs", own_lbfgs}}; }

}  // namespace stretto
