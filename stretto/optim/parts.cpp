#include "stretto/optim/parts.h"

#include <algorithm>

#include "stretto/kernels/flush_denormals.h"

namespace stretto::optim {

void PartwiseOptimizer::step_range(const Range& range, const StepRates& rates, double grad_scale,
                                   int64_t step) {
  constexpr int64_t cached_elements = 16'384;
  const at::NoGradGuard no_grad;
  const kernels::FlushDenormals flush;
  const int64_t elements = range.buffers.master.numel();
  const int64_t length = range.buffers.master.device().is_cpu() ? cached_elements : elements;
  for (int64_t begin = 0; begin < elements; begin += length) {
    const int64_t end = std::min(elements, begin + length);
    const Buffers buffers = slice(range.buffers, begin, end);
    Part part = {.master = buffers.master,
                 .grad = buffers.grad.mul_(grad_scale),
                 .state = {},
                 .weight_decay = range.weight_decay ? weight_decay_ : 0,
                 .lr = rates.lr,
                 .lr_factor = range.lr_factor,
                 .momentum = rates.momentum,
                 .step = step};
    for (const Tensor& state : range.state) part.state.push_back(state.slice(0, begin, end));
    step_part(part);
    part.grad.zero_();
    if (buffers.compute.defined()) Tensor(buffers.compute).copy_(buffers.master);
  }
}

}  // namespace stretto::optim
