#include "stretto/kernels/sgd.h"

#include <torch/optim/sgd.h>

#include "stretto/kernels/each_target_support.h"

namespace stretto::kernels {
namespace {

class SgdKernel : public ::testing::TestWithParam<Precision> {};

TEST_P(SgdKernel, EqualsTorch) {
  for (const bool nesterov : {false, true}) {
    at::manual_seed(2);
    const auto options = at::TensorOptions(GetParam().dtype);
    Tensor theirs = at::randn({77}, options).requires_grad_();
    Tensor ours = theirs.detach().clone(), buffer = at::zeros_like(ours);
    torch::optim::SGD optimizer(
        {theirs}, torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(nesterov));
    for (int64_t step = 1; step <= 5; ++step) {
      const Tensor grad = at::randn({77}, options);
      theirs.mutable_grad() = grad.clone();
      optimizer.step();
      sgd({ours, grad.clone(), {}}, buffer, {0.1, 0.9, 0, 0.01, nesterov, 1.0, step});
    }
    EXPECT_LT((ours - theirs.detach()).abs().max().item<double>(), GetParam().tolerance)
        << "nesterov " << nesterov;
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, SgdKernel,
                         ::testing::Values(Precision{at::kFloat, 2e-6}, Precision{at::kDouble, 1e-13}));

}  // namespace
}  // namespace stretto::kernels
