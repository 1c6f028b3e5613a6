#include "stretto/kernels/cross_entropy.h"

#include <limits>

#include "stretto/kernels/each_target_support.h"

namespace stretto::kernels {
namespace {

Tensor gradient_of(double grad_sum, const Tensor& logits, const Tensor& labels, const CrossEntropy& found) {
  const Tensor grad = at::empty_like(logits);
  cross_entropy_backward(grad_sum, logits, labels, -100, found.normaliser, grad);
  return grad;
}

class CrossEntropyKernel : public ::testing::TestWithParam<Precision> {};

TEST_P(CrossEntropyKernel, EqualsReferenceForwardAndBackward) {
  for_each_target([&] {
    for (const int64_t classes : {1, 2, 17, 30522}) {
      SCOPED_TRACE(classes);
      at::manual_seed(classes);
      const Tensor logits = (at::randn({9, classes}, at::kDouble) * 5 + 40).to(GetParam().dtype);
      Tensor labels = at::randint(classes, {9}, at::kLong);
      labels[4] = -100;
      const Tensor reference_logits = logits.to(at::kDouble).requires_grad_();
      const Tensor reference = cross_entropy_reference(reference_logits, labels, -100);
      (reference * 3).backward();
      const CrossEntropy found = cross_entropy(logits, labels, -100);
      EXPECT_NEAR(found.sum.item<double>(), reference.item<double>(),
                  1e-6 * std::abs(reference.item<double>()) + 1e-6);
      const Tensor grad = gradient_of(3, logits, labels, found);
      EXPECT_LT(difference(grad, reference_logits.grad()), GetParam().tolerance);
      EXPECT_EQ(grad[4].abs().max().item<double>(), 0) << "a row that is left out";
      const Tensor both = logits.clone();
      EXPECT_NEAR(cross_entropy_with_gradient(both, labels, -100), reference.item<double>(),
                  1e-6 * std::abs(reference.item<double>()) + 1e-6);
      EXPECT_LT(difference(both.to(at::kDouble) * 3, reference_logits.grad()), GetParam().tolerance)
          << "in one pass";
      EXPECT_EQ(both[4].abs().max().item<double>(), 0) << "a row that is left out, in one pass";
      cross_entropy_backward(3, logits, labels, -100, found.normaliser, logits);
      EXPECT_TRUE(at::equal(logits, grad)) << "in place";
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CrossEntropyKernel,
                         ::testing::Values(Precision{at::kDouble, 1e-13}, Precision{at::kFloat, 1e-5},
                                           Precision{at::kBFloat16, 4e-3}, Precision{at::kHalf, 1e-3}));

TEST(CrossEntropyKernel, HugeLogitsDoNotOverflow) {
  for_each_target([] {
    const Tensor logits = at::tensor({1e30f, -1e30f, 0.f, 700.f, -700.f, 699.f}).view({2, 3});
    const Tensor labels = at::tensor({0, 0}, at::kLong);
    const CrossEntropy found = cross_entropy(logits, labels, -100);
    EXPECT_NEAR(found.sum.item<double>(), std::log1p(std::exp(-1.0)), 1e-4);
    EXPECT_TRUE(gradient_of(1, logits, labels, found).isfinite().all().item<bool>());
    EXPECT_NEAR(cross_entropy_with_gradient(logits, labels, -100), found.sum.item<double>(), 1e-6);
    EXPECT_TRUE(logits.isfinite().all().item<bool>());
  });
}

// The result depends on differences of logits only, however large the logits are.
TEST(CrossEntropyKernel, LargeLogitsLoseNoPrecision) {
  for_each_target([] {
    const Tensor small = at::tensor({0.f, 1.f, -2.f, 0.5f}).view({1, 4}), labels = at::tensor({2}, at::kLong);
    const CrossEntropy wanted = cross_entropy(small, labels, -100);
    // Differences are exact, because 16384 is a power of two.
    const CrossEntropy found = cross_entropy(small + 16384, labels, -100);
    EXPECT_EQ(found.sum.item<double>(), wanted.sum.item<double>());
    EXPECT_TRUE(
        at::equal(gradient_of(1, small + 16384, labels, found), gradient_of(1, small, labels, wanted)));
  });
}

TEST(CrossEntropyKernel, NonFiniteValuesPropagate) {
  for_each_target([] {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (const int64_t place : {0, 9, 16}) {
        Tensor logits = at::randn({1, 17});
        logits[0][place] = bad;
        const double sum = cross_entropy(logits, at::tensor({3}, at::kLong), -100).sum.item<double>();
        EXPECT_FALSE(std::isfinite(sum)) << bad << " at " << place;
        EXPECT_FALSE(std::isfinite(cross_entropy_with_gradient(logits, at::tensor({3}, at::kLong), -100)));
        EXPECT_FALSE(logits.isfinite().all().item<bool>()) << "the gradient of " << bad << " at " << place;
      }
    }
  });
}

}  // namespace
}  // namespace stretto::kernels
