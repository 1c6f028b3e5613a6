#include "stretto/kernels/sum_of_squares.h"

#include "stretto/kernels/cpu/sum_of_squares_loops.h"

namespace stretto::kernels {

double sum_of_squares(const Tensor& values) {
  if (values.device().is_cpu() && values.scalar_type() == at::kFloat && values.is_contiguous()) {
    return sum_of_squares_loop(values.const_data_ptr<float>(), values.numel());
  }
  const Tensor doubles = values.to(at::kDouble);
  return at::dot(doubles, doubles).item<double>();
}

}  // namespace stretto::kernels
