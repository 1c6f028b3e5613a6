#include "stretto/kernels/bf16_product.h"

#include "stretto/kernels/each_target_support.h"

namespace stretto::kernels {
namespace {

TEST(Bf16Product, AddsTheProductInFp32) {
  if (!has_bf16_product()) GTEST_SKIP() << "this libtorch was built without MKL";
  at::manual_seed(1);
  for (const auto& [k, m, n] : {std::array<int64_t, 3>{1, 1, 1}, {7, 5, 3}, {130, 64, 96}, {33, 100, 17}}) {
    const Tensor a = at::randn({k, m}).to(at::kBFloat16), b = at::randn({k, n}).to(at::kBFloat16);
    const Tensor before = at::randn({m, n});
    const Tensor sum = before.clone();
    add_bf16_product(sum, a, b);
    const Tensor wanted = before.to(at::kDouble) + at::mm(a.to(at::kDouble).t(), b.to(at::kDouble));
    EXPECT_LT(difference(sum, wanted), 1e-6) << m << " x " << n;
  }
}

TEST(Bf16Product, RefusesShapesThatDoNotFit) {
  const Tensor a = at::ones({4, 3}, at::kBFloat16);
  EXPECT_ANY_THROW(add_bf16_product(at::zeros({3, 3}), a, at::ones({5, 3}, at::kBFloat16)));
}

}  // namespace
}  // namespace stretto::kernels
