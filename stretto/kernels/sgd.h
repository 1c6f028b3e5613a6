#pragma once

#include "stretto/kernels/optimizer_range.h"

namespace stretto::kernels {

struct SgdStep {
  double lr, momentum, dampening, weight_decay;
  bool nesterov;
  double grad_scale;
  int64_t step;
};

// SGD like torch.optim.SGD (momentum of Sutskever et al. 2013; the buffer starts as the first gradient).
// `momentum_buffer` is undefined when momentum is 0.
void sgd(const OptimizerRange& range, const Tensor& momentum_buffer, const SgdStep& step);

}  // namespace stretto::kernels
