#pragma once

#include <functional>

#include <gtest/gtest.h>

#include "stretto/tensor/tensor.h"

// simd_targets.h configures Highway's header and must come first.
// clang-format off
#include "stretto/kernels/cpu/simd_targets.h"
#include <hwy/highway.h>
// clang-format on

namespace stretto::kernels {

// Calls `check` once, in tests, for each instruction set that the loops are compiled for and this machine
// has.
inline void for_each_target(const std::function<void()>& check) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// A dtype, and the tolerance of tests for its results.
struct Precision {
  at::ScalarType dtype;
  double tolerance;
};

// Largest difference, relative to the largest expected value.
inline double difference(const at::Tensor& found, const at::Tensor& expected) {
  const double scale = expected.abs().max().item<double>();
  return (found.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>() /
         (scale > 0 ? scale : 1);
}

}  // namespace stretto::kernels
