#include "stretto/tensor/finite.h"

#include <limits>

#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(FirstNonfinite, NamesTheTensor) {
  NamedTensors tensors = {
      {"a", at::ones({3})}, {"b", at::arange(4)}, {"c", at::empty({0})}, {"d", at::ones({100})}};
  EXPECT_EQ(first_nonfinite(tensors), "");
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity()}) {
    tensors["d"][57] = value;
    EXPECT_EQ(first_nonfinite(tensors), "d");
  }
  tensors["a"] = tensors["a"].to(at::kBFloat16);
  tensors["a"][1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(first_nonfinite(tensors), "a");
}

}  // namespace
}  // namespace stretto
