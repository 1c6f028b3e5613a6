#include "stretto/kernels/sum_of_squares.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace stretto::kernels {
namespace {

TEST(SumOfSquares, IsExactAndDetectsNonFiniteValues) {
  at::manual_seed(3);
  Tensor x = at::randn({1001});
  EXPECT_NEAR(sum_of_squares(x), x.to(at::kDouble).square().sum().item<double>(), 1e-9);
  x[1000] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(std::isfinite(sum_of_squares(x)));
  x[1000] = std::numeric_limits<float>::max();
  EXPECT_TRUE(std::isfinite(sum_of_squares(x)));
}

}  // namespace
}  // namespace stretto::kernels
