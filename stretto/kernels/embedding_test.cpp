#include "stretto/kernels/embedding.h"

#include "stretto/kernels/each_target_support.h"

namespace stretto::kernels {
namespace {

class EmbeddingKernel : public ::testing::TestWithParam<Precision> {};

TEST_P(EmbeddingKernel, EqualsReferenceForwardAndBackward) {
  const auto wide = GetParam().dtype == at::kDouble ? at::kDouble : at::kFloat;
  for (const int64_t width : {1, 7, 384, 1030}) {
    SCOPED_TRACE(width);
    at::manual_seed(width);
    std::vector<Lookup> lookups, references;
    for (const int64_t rows : {90, 2, 13}) {
      const Tensor table = at::randn({rows, width}, at::kDouble).to(GetParam().dtype);
      const Tensor ids = at::randint(rows, {31}, at::kLong);
      lookups.push_back({ids, table});
      references.push_back({ids, table.to(wide).requires_grad_()});
      const Tensor sum = row_sum(lookups), reference = row_sum_reference(references);
      EXPECT_LT(difference(sum, reference.detach()), GetParam().tolerance) << lookups.size() << " tables";
    }
    const Tensor grad = at::randn({31, width}, at::kDouble).to(GetParam().dtype);
    row_sum_reference(references).backward(grad.to(wide));
    for (const auto& [ids, table] : references) {
      const Tensor sums = at::ones(table.sizes(), wide);
      add_rows(grad, ids, sums);
      EXPECT_LT(difference(sums - 1, table.grad()), 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, EmbeddingKernel,
                         ::testing::Values(Precision{at::kDouble, 1e-15}, Precision{at::kFloat, 1e-6},
                                           Precision{at::kBFloat16, 4e-3}, Precision{at::kHalf, 1e-3}));

TEST(EmbeddingKernel, AcceptsAnEmptyBatch) {
  EXPECT_EQ(row_sum({{at::empty({0}, at::kLong), at::randn({3, 5})}}).sizes(), at::IntArrayRef({0, 5}));
}

}  // namespace
}  // namespace stretto::kernels
