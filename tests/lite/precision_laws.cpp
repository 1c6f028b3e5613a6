#include <cmath>

#include "laws.h"

namespace stretto {
namespace {

namespace optim = torch::optim;

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

}  // namespace

Laws precision_laws() { return {{"bf16", bf16}, {"fp16_own", fp16_own}, {"fp16_torch", fp16_torch}}; }

}  // namespace stretto
