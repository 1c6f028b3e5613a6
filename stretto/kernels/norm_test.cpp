#include "stretto/kernels/norm.h"

#include "stretto/base/error.h"
#include "stretto/kernels/each_target_support.h"

namespace stretto::kernels {
namespace {

class NormKernel : public ::testing::TestWithParam<Precision> {};

struct Parts {
  bool bias, residual;
  double before, after;
  bool weight = true, offset = true;
};

Tensor leaf(const Tensor& x, at::ScalarType dtype) { return x.to(dtype).detach().clone().requires_grad_(); }

void compare(int64_t rows, int64_t width, const Parts& parts, const Precision& wanted) {
  at::manual_seed(width);
  const auto wide = wanted.dtype == at::kDouble ? at::kDouble : at::kFloat;
  const auto random = [&](at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble).to(wanted.dtype); };
  const Tensor x = random({rows, width}) * 3 + 1, grad = random({rows, width});
  Norm norm;
  norm.bias = parts.bias ? random({width}) : Tensor();
  norm.residual = parts.residual ? random({rows, width}) : Tensor();
  norm.weight = parts.weight ? random({width}) : Tensor();
  norm.offset = parts.offset ? random({width}) : Tensor();
  norm.eps = 1e-5;
  norm.samples = at::arange(rows) + (int64_t{1} << 34);
  norm.places = at::arange(rows) % 7;
  norm.before = {parts.before, 77};
  norm.after = {parts.after, 78};

  Norm reference = norm;
  const auto widen = [&](Tensor& part) { part = part.defined() ? leaf(part, wide) : part; };
  widen(reference.bias), widen(reference.residual), widen(reference.weight), widen(reference.offset);
  const Tensor reference_x = leaf(x, wide), reference_out = norm_rows_reference(reference_x, reference);
  reference_out.backward(grad.to(wide));

  for_each_target([&] {
    const NormResult result = norm_rows(x.clone(), norm);
    const auto sums = [&](const Tensor& part) { return part.defined() ? at::ones({width}, wide) : Tensor(); };
    const NormSums gradients = {sums(norm.weight), sums(norm.offset), sums(norm.bias)};
    const NormGradients found = norm_rows_backward(grad, result, norm, gradients);
    EXPECT_LT(difference(parts.weight ? result.out : result.sum, reference_out.detach()), wanted.tolerance);
    EXPECT_LT(difference(found.x, reference_x.grad()), wanted.tolerance);
    if (parts.residual) {
      EXPECT_LT(difference(found.residual, reference.residual.grad()), wanted.tolerance);
    }
    if (parts.weight) {
      EXPECT_LT(difference(gradients.weight - 1, reference.weight.grad()), wanted.tolerance);
    }
    if (parts.offset) {
      EXPECT_LT(difference(gradients.offset - 1, reference.offset.grad()), wanted.tolerance);
    }
    if (parts.bias) {
      EXPECT_LT(difference(gradients.bias - 1, reference.bias.grad()), wanted.tolerance);
    }
  });
}

TEST_P(NormKernel, EqualsReferenceForAnyWidthAndParts) {
  for (const int64_t width : {7, 16, 33, 384, 700}) {
    for (const Parts& parts :
         {Parts{true, true, 0.1, 0}, Parts{true, true, 0, 0}, Parts{false, false, 0, 0.3},
          Parts{false, true, 0.2, 0.1}, Parts{true, true, 0.1, 0, true, false},
          Parts{false, false, 0, 0.3, true, false}, Parts{true, true, 0.1, 0, false, false},
          Parts{true, true, 0, 0, false, false}}) {
      SCOPED_TRACE(::testing::Message() << "width " << width << ", dropout before " << parts.before
                                        << ", weight " << parts.weight << ", offset " << parts.offset);
      compare(150, width, parts, GetParam());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, NormKernel,
                         ::testing::Values(Precision{at::kDouble, 1e-11}, Precision{at::kFloat, 1e-5},
                                           Precision{at::kBFloat16, 3e-2}, Precision{at::kHalf, 8e-3}));

// If nothing is added or dropped, the input is not written to.
TEST(NormKernel, NormAloneDoesNotChangeItsInput) {
  Norm norm;
  norm.weight = at::ones({4});
  const Tensor x = at::randn({3, 4}), before = x.clone();
  const NormResult result = norm_rows(x, norm);
  EXPECT_TRUE(at::equal(x, before));
  EXPECT_TRUE(result.sum.is_same(x));
  norm.residual = at::ones({3, 4});
  norm_rows(x, norm);
  EXPECT_TRUE(at::allclose(x, before + 1));
}

TEST(NormKernel, MismatchesAreRefused) {
  Norm norm;
  norm.weight = norm.offset = at::ones({4}, at::kDouble);
  EXPECT_ANY_THROW(norm_rows(at::ones({3, 4}), norm));
  norm.weight = norm.offset = at::ones({4});
  EXPECT_THROW(norm_rows(at::ones({3, 5}), norm), ShapeError) << "weights of another width";
  EXPECT_THROW(norm_rows(at::ones({4}), norm), ShapeError) << "no rows";
  norm.residual = at::ones({1, 4});
  EXPECT_THROW(norm_rows(at::ones({3, 4}), norm), ShapeError) << "what would be broadcast";
  norm.residual = at::ones({3, 4});
  EXPECT_NO_THROW(norm_rows(at::ones({3, 4}), norm));
}

}  // namespace
}  // namespace stretto::kernels
