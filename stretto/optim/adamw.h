#pragma once

#include <memory>

#include "stretto/optim/optimizer.h"

namespace stretto::optim {

// Defaults are torch.optim.AdamW's.
struct AdamwOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
};

// Adam with decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2). State: exp_avg, exp_avg_sq. With eps > 0 it
// steps rows of tables.
std::unique_ptr<Optimizer> adamw(const AdamwOptions& options);

}  // namespace stretto::optim
