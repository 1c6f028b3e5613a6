#include "stretto/kernels/matmul/speed.h"

#include <cmath>

#include <gtest/gtest.h>

namespace stretto::kernels {
namespace {

TEST(MatmulSpeed, EveryUsableLibraryIsTimed) {
  for (const MatmulRole role : all_matmul_roles) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      const auto times = time_matmul({role, dtype, 5, 7, 3}, 2, std::chrono::seconds(60));
      size_t usable = 0;
      for (const MatmulLibrary library : all_matmul_libraries) usable += is_usable(library, role, dtype);
      ASSERT_EQ(times.size(), usable);
      for (const MatmulTime& time : times) EXPECT_TRUE(std::isfinite(time.seconds) && time.seconds > 0);
    }
  }
}

TEST(MatmulSpeed, AtLeastOneRoundIsMeasured) {
  const auto times =
      time_matmul({MatmulRole::forward, at::kFloat, 5, 7, 3}, 1'000'000, std::chrono::seconds(0));
  for (const MatmulTime& time : times) EXPECT_TRUE(std::isfinite(time.seconds));
}

TEST(MatmulSpeed, OperationsOfAMatmul) {
  EXPECT_EQ((MatmulShape{.rows = 5, .in = 7, .out = 3}.operations()), 2 * 5 * 7 * 3);
}

}  // namespace
}  // namespace stretto::kernels
