#pragma once

#include <functional>

#include <gtest/gtest.h>

#include "stretto/tensor/tensor.h"

// The first decides what the second declares.
// clang-format off
#include "stretto/kernels/cpu/simd_targets.h"
#include <hwy/highway.h>
// clang-format on

namespace stretto::kernels {

// For tests: calls `check` once for each instruction set that the loops are compiled for and this machine has.
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

// What tests run over: a type, and the largest difference that it may make.
struct Precision {
  at::ScalarType dtype;
  double tolerance;
};

// Largest difference, relative to the largest value that is wanted.
inline double difference(const at::Tensor& found, const at::Tensor& wanted) {
  const double scale = wanted.abs().max().item<double>();
  return (found.to(at::kDouble) - wanted.to(at::kDouble)).abs().max().item<double>() /
         (scale > 0 ? scale : 1);
}

}  // namespace stretto::kernels
