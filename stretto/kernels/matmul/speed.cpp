#include "stretto/kernels/matmul/speed.h"

#include <algorithm>
#include <limits>

#include "stretto/base/clock.h"

namespace stretto::kernels {
namespace {

using Clock = std::chrono::steady_clock;

struct Operands {
  Tensor out, a, b;
  bool accumulate = false;
};

Operands operands_of(const MatmulShape& shape) {
  const auto filled = [&](int64_t rows, int64_t columns) {
    return at::full({rows, columns}, 0.5, shape.dtype);
  };
  const auto empty = [&](int64_t rows, int64_t columns) { return at::empty({rows, columns}, shape.dtype); };
  switch (shape.role) {
    case MatmulRole::forward:
      return {empty(shape.rows, shape.out), filled(shape.rows, shape.in), filled(shape.out, shape.in).t()};
    case MatmulRole::input_gradient:
      return {empty(shape.rows, shape.in), filled(shape.rows, shape.out), filled(shape.out, shape.in)};
    case MatmulRole::weight_gradient:
      break;
  }
  const auto sum_type = shape.dtype == at::kBFloat16 ? at::kFloat : shape.dtype;
  return {at::zeros({shape.out, shape.in}, sum_type), filled(shape.rows, shape.out).t(),
          filled(shape.rows, shape.in), true};
}

}  // namespace

std::vector<MatmulTime> time_matmul(const MatmulShape& shape, int rounds,
                                    std::chrono::duration<double> budget) {
  const auto start = Clock::now();
  at::NoGradGuard no_grad;
  const Operands operands = operands_of(shape);
  std::vector<MatmulTime> times;
  for (const MatmulLibrary library : all_matmul_libraries) {
    if (is_usable(library, shape.role, shape.dtype))
      times.push_back({library, std::numeric_limits<double>::infinity()});
  }
  for (int round = 0; round <= rounds; ++round) {
    if (round > 1 && Clock::now() - start > budget) break;
    for (MatmulTime& time : times) {
      const auto before = Clock::now();
      multiply_by(time.library, operands.out, operands.a, operands.b, operands.accumulate);
      if (round > 0) time.seconds = std::min(time.seconds, seconds_since(before));
    }
  }
  return times;
}

}  // namespace stretto::kernels
