#include "stretto/kernels/activation.h"

#include <limits>

#include "stretto/base/error.h"
#include "stretto/kernels/each_target_support.h"

namespace stretto::kernels {
namespace {

class ActivationKernel : public ::testing::TestWithParam<Precision> {};

constexpr Activation activations[] = {Activation::gelu, Activation::gelu_tanh, Activation::relu,
                                      Activation::silu, Activation::tanh,      Activation::sigmoid};

void compare(Activation activation, int64_t width, bool with_bias, bool with_factor,
             const Precision& wanted) {
  at::manual_seed(width);
  const auto wide = wanted.dtype == at::kDouble ? at::kDouble : at::kFloat;
  const Tensor x = (at::randn({50, width}, at::kDouble) * 4).to(wanted.dtype);
  const Tensor grad = at::randn({50, width}, at::kDouble).to(wanted.dtype);
  const Tensor bias = with_bias ? at::randn({width}, at::kDouble).to(wanted.dtype) : Tensor();
  const Tensor factor = with_factor ? at::randn({50, width}, at::kDouble).to(wanted.dtype) : Tensor();
  const auto leaf = [&](const Tensor& part) { return part.to(wide).detach().clone().requires_grad_(); };
  const Tensor reference_x = leaf(x), reference_bias = with_bias ? leaf(bias) : Tensor();
  const Tensor reference_factor = with_factor ? leaf(factor) : Tensor();
  const Tensor reference = activate_reference(activation, reference_x, reference_bias, reference_factor);
  reference.backward(grad.to(wide));
  const Tensor bias_sum = with_bias ? at::ones({width}, wide) : Tensor();
  const Tensor out = activate(activation, x, bias, factor);
  EXPECT_LT(difference(out, reference.detach()), wanted.tolerance);
  const Tensor x_gradient = grad.clone(), again = x.clone();
  const Tensor factor_gradient = with_factor ? factor.clone() : Tensor();
  activate_backward(activation, x_gradient, again, bias, factor_gradient, bias_sum);
  EXPECT_TRUE(at::equal(again, out));
  EXPECT_LT(difference(x_gradient, reference_x.grad()), wanted.tolerance);
  if (with_factor) {
    EXPECT_LT(difference(factor_gradient, reference_factor.grad()), wanted.tolerance);
  }
  if (with_bias) {
    EXPECT_LT(difference(bias_sum - 1, reference_bias.grad()), wanted.tolerance);
  }
}

TEST_P(ActivationKernel, EqualsReferenceForEveryActivation) {
  for_each_target([] {
    for (const Activation activation : activations) {
      for (const int64_t width : {1, 7, 64, 300}) {
        SCOPED_TRACE("activation " + std::to_string(static_cast<int>(activation)) + ", width " +
                     std::to_string(width));
        compare(activation, width, true, false, GetParam());
        compare(activation, width, false, false, GetParam());
        compare(activation, width, true, true, GetParam());
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Dtypes, ActivationKernel,
                         ::testing::Values(Precision{at::kDouble, 1e-12}, Precision{at::kFloat, 1e-5},
                                           Precision{at::kBFloat16, 1e-2}, Precision{at::kHalf, 2e-3}));

// Large inputs give finite and correct results.
TEST(ActivationKernel, HugeValuesSaturate) {
  for_each_target([] {
    const Tensor x =
        at::tensor({-1e30, -3000., -300., -100., 100., 300., 3000., 1e30}, at::kFloat).view({1, -1});
    for (const Activation activation : activations) {
      SCOPED_TRACE("activation " + std::to_string(static_cast<int>(activation)));
      const Tensor found = activate(activation, x, {}), wanted = activate_reference(activation, x, {});
      EXPECT_TRUE(at::allclose(found, wanted, 1e-6, 1e-8)) << found << wanted;
    }
  });
}

// Far from 0, where erf is nearly 1, results are as accurate as ATen's.
TEST(ActivationKernel, GeluIsAccurateEverywhere) {
  for_each_target([] {
    const Tensor x = at::linspace(-14, 14, 100001, at::kFloat).view({1, -1});
    const Tensor exact = at::gelu(x.to(at::kDouble));
    const Tensor error = (activate(Activation::gelu, x, {}).to(at::kDouble) - exact).abs();
    EXPECT_LT((error / (exact.abs() + 1e-30)).masked_select(x.gt(-5)).max().item<double>(), 3e-6);
    EXPECT_LT(error.max().item<double>(), 1e-6);
  });
}

TEST(ActivationKernel, RefusesMismatchedShapes) {
  EXPECT_THROW(activate(Activation::gelu, at::ones({2, 3}), at::ones({4})), ShapeError);
  EXPECT_THROW(activate(Activation::gelu, at::ones({3}), {}), ShapeError);
}

TEST(ActivationKernel, NonFiniteValuesPropagate) {
  for_each_target([] {
    const Tensor x = at::full({1, 9}, std::numeric_limits<float>::quiet_NaN());
    for (const Activation activation : activations) {
      EXPECT_TRUE(at::isnan(activate(activation, x, {})).all().item<bool>()) << static_cast<int>(activation);
    }
  });
}

}  // namespace
}  // namespace stretto::kernels
