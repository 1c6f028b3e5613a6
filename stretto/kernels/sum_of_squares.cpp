#include "stretto/kernels/sum_of_squares.h"

#include <algorithm>

#include "stretto/kernels/cpu/sum_of_squares_loops.h"

namespace stretto::kernels {
namespace {

Tensor square_of(const Tensor& values) {
  const Tensor doubles = values.to(at::kDouble);
  return at::dot(doubles, doubles);
}

}  // namespace

double sum_of_squares(const Tensor& values) {
  if (values.device().is_cpu() && values.scalar_type() == at::kFloat && values.is_contiguous()) {
    return sum_of_squares_loop(values.const_data_ptr<float>(), values.numel());
  }
  if (values.device().is_cpu()) return square_of(values).item<double>();
  // In parts, so that no copy of a model's gradients in fp64 is needed, and with one transfer from the
  // device.
  constexpr int64_t at_once = int64_t{1} << 24;
  const Tensor all = values.reshape({-1}), sum = at::zeros({}, values.options().dtype(at::kDouble));
  for (int64_t begin = 0; begin < all.numel(); begin += at_once)
    Tensor(sum).add_(square_of(all.slice(0, begin, std::min(all.numel(), begin + at_once))));
  return sum.item<double>();
}

}  // namespace stretto::kernels
