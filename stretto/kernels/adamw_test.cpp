#include "stretto/kernels/adamw.h"

#include <cstring>

#include <torch/optim/adamw.h>

#include "stretto/kernels/each_target_support.h"

namespace stretto::kernels {
namespace {

// Compares bitwise: 0 and -0 differ.
bool same_bits(const Tensor& a, const Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

double largest_difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

class AdamwKernel : public ::testing::TestWithParam<Precision> {};

TEST_P(AdamwKernel, EqualsTorch) {
  for (const at::ScalarType copy : {at::kBFloat16, at::kHalf}) {
    at::manual_seed(1);
    const auto options = at::TensorOptions(GetParam().dtype);
    Tensor theirs = at::randn({5003}, options).requires_grad_();
    Tensor ours = theirs.detach().clone();
    Tensor m = at::zeros_like(ours), v = at::zeros_like(ours), compute = at::empty_like(ours, copy);
    torch::optim::AdamW optimizer({theirs}, torch::optim::AdamWOptions(0.01).weight_decay(0.1));
    for (int64_t step = 1; step <= 10; ++step) {
      const Tensor sum_grad = at::randn({5003}, options) * 4;
      theirs.mutable_grad() = sum_grad / 4;
      optimizer.step();
      Tensor grad = sum_grad.clone();
      adamw({ours, grad, compute}, m, v, {0.01, 0.9, 0.999, 1e-8, 0.1, 0.25, step});
      EXPECT_EQ(grad.abs().max().item<double>(), 0);
    }
    EXPECT_LT(largest_difference(ours, theirs.detach()), GetParam().tolerance);
    EXPECT_TRUE(at::equal(compute, ours.to(copy)));
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, AdamwKernel,
                         ::testing::Values(Precision{at::kFloat, 2e-6}, Precision{at::kDouble, 1e-13}));

// Rows that are skipped and updated later are bitwise equal to rows that every step has updated.
TEST_P(AdamwKernel, IdleRowsCatchUpBitwise) {
  for (const int64_t width : {16, 384, 37}) {
    SCOPED_TRACE(width);
    at::manual_seed(4);
    const auto options = at::TensorOptions(GetParam().dtype);
    const auto bf16 = [](const Tensor& like) { return at::zeros_like(like, at::kBFloat16); };
    const bool copies = GetParam().dtype == at::kFloat;
    const Tensor dense = at::randn({5 * width}, options), rows = dense.clone();
    const Tensor dense_copy = copies ? bf16(dense) : Tensor(), rows_copy = copies ? bf16(dense) : Tensor();
    const Tensor m = at::zeros_like(dense), v = at::zeros_like(dense);
    const Tensor rows_m = at::zeros_like(dense), rows_v = at::zeros_like(dense);
    const Tensor no_gradient = at::zeros_like(dense);
    std::vector<AdamwStep> steps;
    for (int64_t step = 1; step <= 20; ++step) {
      steps.push_back({0.01 / static_cast<double>(step), 0.9, 0.999, 1e-8, 0.1, 0.5, step});
      Tensor grad = at::zeros_like(dense);
      const bool touches = step == 1 || step == 7;  // rows 1 and 3
      if (touches) grad.view({5, width}).index_fill_(0, at::tensor({1, 3}, at::kLong), step * 0.3);
      const Tensor rows_grad = grad.clone();
      adamw({dense, grad, dense_copy}, m, v, steps.back());
      if (!touches) continue;
      const std::vector<int64_t> touched = {1, 3};
      if (step == 7) {
        const std::vector<IdleRow> idle = {{1, 1, true}, {3, 1, true}};
        adamw_idle_rows({rows, no_gradient, rows_copy}, rows_m, rows_v, width, idle,
                        std::span(steps).first(6));
      }
      adamw_rows({rows, rows_grad, rows_copy}, rows_m, rows_v, width, touched, steps.back());
      EXPECT_EQ(rows_grad.abs().max().item<double>(), 0);
    }
    const std::vector<IdleRow> idle = {
        {0, 0, false}, {1, 7, true}, {2, 0, true}, {3, 7, true}, {4, 0, false}};
    adamw_idle_rows({rows, no_gradient, rows_copy}, rows_m, rows_v, width, idle, steps);
    EXPECT_TRUE(same_bits(rows, dense));
    EXPECT_TRUE(same_bits(rows_m, m));
    EXPECT_TRUE(same_bits(rows_v, v));
    if (copies) {
      EXPECT_TRUE(same_bits(rows_copy, dense_copy));
    }
  }
}

// Denormal moments are flushed to zero; the thread's floating-point mode is restored.
TEST(Adamw, DenormalMomentsAreZeros) {
  const Tensor p = at::ones({20}), g = at::zeros({20}), m = at::full({20}, 1.2e-38f),
               v = at::full({20}, 1e-30f);
  adamw({p, g, {}}, m, v, {0.1, 0.9, 0.999, 1e-8, 0, 1, 900});
  EXPECT_EQ(m.abs().max().item<float>(), 0);
  EXPECT_GT(v.min().item<float>(), 0);
  volatile float tiny = 1.2e-38f;
  EXPECT_GT(tiny * 0.5f, 0) << "denormal numbers are back";
}

}  // namespace
}  // namespace stretto::kernels
