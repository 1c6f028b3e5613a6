#pragma once

#include "stretto/comm/group.h"
#include "stretto/data/dataset.h"
#include "stretto/trainer/module.h"

namespace stretto {

struct Evaluation {
  Tensor rows;  // [dataset size, K] float64, in dataset order; at rank 0 only
};

// Runs evaluation_step over the whole dataset, each sample exactly once over all ranks, at most batch_size samples a
// rank and step. Every rank must call it.
Evaluation evaluate(Module& module, const data::Dataset& dataset, Group& group, int64_t batch_size,
                    at::Device device);

}  // namespace stretto
