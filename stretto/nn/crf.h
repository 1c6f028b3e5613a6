#pragma once

#include <torch/nn/module.h>

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// What a linear-chain conditional random field (Lafferty et al. 2001) adds to the scores of each element: `transitions`
// [K, K], from the row's tag to the column's; `start` [K], of a sequence's first tag; `end` [K], of its last one.
struct CrfScores {
  Tensor transitions, start, end;
};

// The functions below take emissions [N, K], the scores of K tags for the elements of B sequences, of which sequence b is rows
// cu_seqlens[b] .. cu_seqlens[b + 1] (none for an empty sequence, and rows behind the last one are ignored). They compute in
// fp64 on the CPU, whatever the tensors' type and device. They throw ShapeError where sizes do not fit.

// -log p(tags | emissions) of each sequence, [B], with the exact partition function; differentiable in emissions and scores.
// tags [N] int64. Throws DataError for a tag that is not one of K.
Tensor crf_losses(const Tensor& emissions, const Tensor& cu_seqlens, const Tensor& tags,
                  const CrfScores& scores);

// The most probable sequence of tags (Viterbi 1967), [N] int64; of equal ones that with the smaller tags from its end on. 0 in
// rows without a sequence.
Tensor crf_best_tags(const Tensor& emissions, const Tensor& cu_seqlens, const CrfScores& scores);

// The probability of each tag of each element, [N, K] fp64; 0 in rows without a sequence.
Tensor crf_marginals(const Tensor& emissions, const Tensor& cu_seqlens, const CrfScores& scores);

// A conditional random field as a layer.
struct Crf : torch::nn::Module {
  explicit Crf(int64_t tags);
  enum class Result { losses, best_tags, marginals };
  // Of the functions above, that of `result`; `tags` is read for losses only.
  Tensor forward(const Tensor& emissions, const Tensor& cu_seqlens, const Tensor& tags, Result result) const;
  Tensor transitions;  // [tags, tags]
  Tensor start, end;   // [tags]
};

}  // namespace stretto::nn
