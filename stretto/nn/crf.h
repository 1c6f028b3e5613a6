#pragma once

#include <torch/nn/module.h>

#include "stretto/tensor/tensor.h"

namespace stretto::nn {

// The scores that a linear-chain conditional random field (Lafferty et al. 2001) adds to those of each
// element: `transitions` [K, K], from the row's tag to the column's; `start` [K], of a sequence's first tag;
// `end` [K], of its last one.
struct CrfScores {
  Tensor transitions, start, end;
};

// The functions below take emissions [N, K], the scores of K tags for the elements of B sequences. Sequence b
// is rows [cu_seqlens[b], cu_seqlens[b + 1]) and may be empty; rows after the last sequence are ignored. They
// compute in fp64 on the CPU for any dtype and device. They throw ShapeError if sizes do not match.

// -log p(tags | emissions) of each sequence, [B], with the exact partition function; differentiable in
// emissions and scores. tags [N] int64. Throws DataError for a tag that is not one of K.
Tensor crf_losses(const Tensor& emissions, const Tensor& cu_seqlens, const Tensor& tags,
                  const CrfScores& scores);

// The most probable sequence of tags (Viterbi 1967), [N] int64; ties go to the smaller tags, from the end of
// the sequence on. 0 in rows without a sequence.
Tensor crf_best_tags(const Tensor& emissions, const Tensor& cu_seqlens, const CrfScores& scores);

// The probability of each tag of each element, [N, K] fp64; 0 in rows without a sequence.
Tensor crf_marginals(const Tensor& emissions, const Tensor& cu_seqlens, const CrfScores& scores);

// A conditional random field as a layer.
struct Crf : torch::nn::Module {
  explicit Crf(int64_t tags);
  enum class Result { losses, best_tags, marginals };
  // Calls the function above that `result` names; `tags` is used for losses only.
  Tensor forward(const Tensor& emissions, const Tensor& cu_seqlens, const Tensor& tags, Result result) const;
  Tensor transitions;  // [tags, tags]
  Tensor start, end;   // [tags]
};

}  // namespace stretto::nn
