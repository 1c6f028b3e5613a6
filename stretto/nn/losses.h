#pragma once

#include "stretto/nn/functional.h"

// Further losses for classification and regression, computed by ATen's operators; see functional.h for the
// plain cross_entropy.
namespace stretto::nn {

struct CrossEntropyOptions {
  Tensor class_weights = {};   // [C], positive; undefined: 1 each
  double label_smoothing = 0;  // Szegedy et al. 2016, eq. 7
};

// Sum over rows of the weighted, smoothed cross entropy, and the sum of the weights of their labels; their
// quotient equals torch's nn.CrossEntropyLoss. logits [N, C] any float type (computed in fp32 or fp64),
// labels [N] int64 in [0, C). Throws ShapeError, DataError for other labels.
Loss cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options,
                   const Context& context = {});

// Sum of (predicted - wanted)^2 and the number of rows. predicted [N, 1], wanted [N]. Throws ShapeError.
Loss squared_error(const Tensor& predicted, const Tensor& wanted);

// Sum over rows and classes of the binary cross entropy of sigmoid(logits), and N * C. logits [N, C]; wanted
// [N, C] of 0 and 1; positive_weights [C]: factors of the terms of positive classes (torch's pos_weight);
// undefined: 1 each. Throws ShapeError.
Loss binary_cross_entropy(const Tensor& logits, const Tensor& wanted, const Tensor& positive_weights = {});

}  // namespace stretto::nn
