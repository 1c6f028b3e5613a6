#pragma once

#include <chrono>
#include <compare>
#include <vector>

#include "stretto/kernels/matmul/matmul.h"

namespace stretto::kernels {

// One of the matmuls of a linear map from `in` to `out` features, with `rows` rows.
struct MatmulShape {
  MatmulRole role = MatmulRole::forward;
  at::ScalarType dtype = at::kFloat;  // of the operands
  int64_t rows = 0, in = 0, out = 0;

  double operations() const { return 2.0 * static_cast<double>(rows * in) * static_cast<double>(out); }
  auto operator<=>(const MatmulShape&) const = default;
};

struct MatmulTime {
  MatmulLibrary library = MatmulLibrary::aten;
  double seconds = 0;
};

// The shortest time of each usable library for a matmul as layers compute it, that is, with weight gradients
// accumulated in fp32. The libraries take turns, for at most `rounds` rounds after a warm-up round; no round
// begins after `budget`, except that one is always measured.
std::vector<MatmulTime> time_matmul(const MatmulShape& shape, int rounds,
                                    std::chrono::duration<double> budget);

}  // namespace stretto::kernels
