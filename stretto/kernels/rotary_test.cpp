#include "stretto/kernels/rotary.h"

#include "stretto/base/error.h"
#include "stretto/kernels/each_target_support.h"

namespace stretto::kernels {
namespace {

class RotaryKernel : public ::testing::TestWithParam<Precision> {};

TEST_P(RotaryKernel, EqualsReferenceForAnyPartOfAHead) {
  const auto wide = GetParam().dtype == at::kDouble ? at::kDouble : at::kFloat;
  for (const int64_t width : {2, 10, 64, 80}) {
    for (const int64_t half : {width / 2, width / 4}) {
      SCOPED_TRACE(::testing::Message() << "width " << width << ", pairs " << half);
      at::manual_seed(width);
      const Tensor x = at::randn({7, 3, width}, at::kDouble).to(GetParam().dtype);
      const Tensor grad = at::randn({7, 3, width}, at::kDouble).to(GetParam().dtype);
      const Tensor angles = at::randn({7, half}, wide);
      const Tensor leaf = x.to(wide).detach().clone().requires_grad_();
      const Tensor reference = rotate_reference(leaf, angles.cos(), angles.sin());
      reference.backward(grad.to(wide));
      EXPECT_LT(difference(rotate(x, angles.cos(), angles.sin()), reference.detach()), GetParam().tolerance);
      EXPECT_LT(difference(rotate(grad, angles.cos(), angles.sin(), /*back=*/true), leaf.grad()),
                GetParam().tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, RotaryKernel,
                         ::testing::Values(Precision{at::kDouble, 1e-14}, Precision{at::kFloat, 1e-6},
                                           Precision{at::kBFloat16, 1e-2}, Precision{at::kHalf, 2e-3}));

TEST(RotaryKernel, MismatchesAreRefused) {
  const Tensor x = at::ones({3, 2, 8}), angles = at::ones({3, 4});
  EXPECT_NO_THROW(rotate(x, angles, angles));
  EXPECT_THROW(rotate(x, at::ones({3, 5}), at::ones({3, 5})), ShapeError);
  EXPECT_THROW(rotate(x, at::ones({2, 4}), at::ones({2, 4})), ShapeError);
  EXPECT_THROW(rotate(x, angles, at::ones({3, 3})), ShapeError);
  EXPECT_THROW(rotate(x.flatten(1), angles, angles), ShapeError);
}

}  // namespace
}  // namespace stretto::kernels
