#pragma once

#include "stretto/comm/group.h"
#include "stretto/data/dataset.h"
#include "stretto/trainer/module.h"

namespace stretto {

// What an evaluation found, at rank 0.
struct Evaluation {
  Tensor rows;     // [dataset size, K] float64, in dataset order; undefined where validation_step gives none
  Metrics logged;  // means over the dataset
};

// Runs validation_step over the whole dataset, each sample exactly once over all ranks, at most batch_size samples per
// rank and step. Every rank must call it.
Evaluation evaluate(Module& module, const data::Dataset& dataset, Group& group, int64_t batch_size,
                    at::Device device, nn::Kernels kernels = nn::Kernels::fast);

// All metrics of an evaluation: those of its rows, and what was logged besides.
Metrics measure(const Module& module, const Evaluation& evaluation);

}  // namespace stretto
