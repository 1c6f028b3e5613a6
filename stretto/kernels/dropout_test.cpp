#include "stretto/kernels/dropout.h"

#include "stretto/base/philox.h"
#include "stretto/kernels/each_target_support.h"

namespace stretto::kernels {
namespace {

DropoutRows some_rows(int64_t streams) {
  return {at::tensor({int64_t{5}, int64_t{1} << 40, int64_t{7}}),
          at::tensor({int64_t{0}, int64_t{3}, int64_t{511}}), streams};
}

TEST(Dropout, KernelEqualsReferenceAtOddWidths) {
  for_each_target([] {
    for (const int64_t columns : {1, 3, 4, 63, 64, 65, 600}) {
      const Tensor mask = dropout_mask(some_rows(3), columns, 0.3, 0x123456789abcdef0, at::kFloat);
      const Tensor reference =
          dropout_mask_reference(some_rows(3), columns, 0.3, 0x123456789abcdef0, at::kFloat);
      EXPECT_TRUE(at::equal(mask, reference)) << columns;
    }
  });
}

TEST(Dropout, SomeColumnsHaveTheMaskOfAll) {
  DropoutRows rows = some_rows(2);
  const Tensor all = dropout_mask(rows, 700, 0.4, 5, at::kFloat);
  for (const int64_t first : {4, 256, 600}) {
    rows.first_column = first;
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      const Tensor part = dropout_mask(rows, 700 - first, 0.4, 5, dtype);
      EXPECT_TRUE(at::equal(part.gt(0), all.slice(1, first).gt(0))) << first;
    }
  }
}

TEST(Dropout, FollowsPhilox) {
  const uint64_t key = 77;
  const Tensor mask = dropout_mask(some_rows(2), 10, 0.5, key, at::kDouble);
  const uint64_t sample = uint64_t{1} << 40;
  const uint32_t stream = 1;
  const auto words =
      philox({2, 3, static_cast<uint32_t>(sample), static_cast<uint32_t>(sample >> 32) | stream << 16}, key);
  EXPECT_EQ(mask[1 * 2 + 1][9].item<double>(), words[1] >= 0x80000000u ? 2.0 : 0.0);
}

TEST(Dropout, RowsDoNotDependOnTheirNeighbours) {
  const DropoutRows rows = some_rows(1);
  const DropoutRows last = {rows.samples.slice(0, 2), rows.places.slice(0, 2), 1};
  EXPECT_TRUE(at::equal(dropout_mask(rows, 50, 0.1, 9, at::kFloat)[2],
                        dropout_mask(last, 50, 0.1, 9, at::kFloat)[0]));
}

TEST(Dropout, AProbabilityNearOneDoesNotDisableDropout) {
  const DropoutRows rows = {at::zeros({1}, at::kLong).expand({100}), at::arange(100), 1};
  EXPECT_EQ(dropout_mask(rows, 100, 1 - 1e-12, 3, at::kFloat).count_nonzero().item<int64_t>(), 0);
}

TEST(Dropout, DropsTheRequestedShareAndKeepsTheMean) {
  const DropoutRows rows = {at::arange(1000), at::zeros({1000}, at::kLong), 1};
  const Tensor mask = dropout_mask(rows, 1000, 0.1, 3, at::kFloat);
  EXPECT_NEAR(mask.eq(0).to(at::kDouble).mean().item<double>(), 0.1, 0.002);
  EXPECT_NEAR(mask.to(at::kDouble).mean().item<double>(), 1.0, 0.002);
}

}  // namespace
}  // namespace stretto::kernels
