#include "stretto/kernels/column_sums.h"

#include <string>

#include "stretto/base/error.h"
#include "stretto/kernels/each_target_support.h"
#include "stretto/kernels/loop_types.h"

namespace stretto::kernels {
namespace {

class ColumnSums : public ::testing::TestWithParam<Precision> {};

TEST_P(ColumnSums, AreAddedInTheTypeOfTheSums) {
  const auto& [dtype, tolerance] = GetParam();
  for_each_target([&, type = dtype, limit = tolerance] {
    for (const int64_t rows : {0, 1, 4, 7, 103}) {
      for (const int64_t width : {1, 7, 64, 300}) {
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(width));
        at::manual_seed(rows + width);
        const Tensor x = at::randn({rows, width}, at::kDouble).to(type);
        const Tensor sums = at::ones({width}, computed_type(type));
        add_column_sums(x, sums);
        EXPECT_LT(difference(sums, x.to(at::kDouble).sum(0) + 1), limit);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Dtypes, ColumnSums,
                         ::testing::Values(Precision{at::kDouble, 1e-12}, Precision{at::kFloat, 1e-5},
                                           Precision{at::kBFloat16, 1e-5}));

TEST(ColumnSums, RefuseMismatchedShapes) {
  EXPECT_THROW(add_column_sums(at::ones({2, 3}), at::ones({2})), ShapeError);
  EXPECT_THROW(add_column_sums(at::ones({3}), at::ones({3})), ShapeError);
  EXPECT_THROW(add_column_sums(at::ones({3, 2}).t(), at::ones({3})), ShapeError);
}

}  // namespace
}  // namespace stretto::kernels
