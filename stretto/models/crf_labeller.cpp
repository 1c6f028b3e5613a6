#include "stretto/models/crf_labeller.h"

#include "stretto/nn/crf.h"
#include "stretto/nn/sharded.h"

namespace stretto {
namespace {

using Result = nn::Crf::Result;

// Returns the words of a batch as separate sequences.
struct Words {
  explicit Words(const Batch& batch) {
    const Tensor is_word = batch.at("words").ge(0);
    rows = is_word.nonzero().squeeze(1);
    const Tensor before = at::cat({at::zeros({1}, rows.options()), is_word.cumsum(0)});
    cu_seqlens = before.index_select(0, batch.at("cu_seqlens"));
  }

  // Returns [tokens, ...]: `of_words` [words, ...] at the rows of the words, and zeros in other rows.
  Tensor spread(const Tensor& of_words, int64_t tokens) const {
    std::vector<int64_t> sizes = of_words.sizes().vec();
    sizes[0] = tokens;
    return at::zeros(sizes, of_words.options()).index_copy_(0, rows, of_words);
  }

  Tensor rows;        // [words]
  Tensor cu_seqlens;  // [B + 1]
};

}  // namespace

Loss CrfLabeller::loss(const Tensor& logits, const Batch& batch, const nn::Context&,
                       const std::vector<double>&) const {
  const Words words(batch);
  const Tensor labels = batch.at("labels").index_select(0, words.rows);
  const Tensor scores = logits.index_select(0, words.rows);
  return {crf_->forward(scores, words.cu_seqlens, labels, Result::losses).sum(), words.rows.numel()};
}

SequenceLosses CrfLabeller::losses(const Tensor& logits, const Batch& batch) const {
  const Words words(batch);
  const Tensor labels = batch.at("labels").index_select(0, words.rows);
  const Tensor scores = logits.index_select(0, words.rows);
  return {crf_->forward(scores, words.cu_seqlens, labels, Result::losses).to(at::kCPU, at::kDouble),
          words.cu_seqlens.diff().to(at::kCPU, at::kDouble)};
}

Tensor CrfLabeller::best_tags(const Tensor& logits, const Batch& batch) const {
  const Words words(batch);
  const Tensor scores = logits.index_select(0, words.rows);
  return words.spread(crf_->forward(scores, words.cu_seqlens, {}, Result::best_tags), logits.size(0));
}

Tensor CrfLabeller::probabilities(const Tensor& logits, const Batch& batch) const {
  const Words words(batch);
  const Tensor scores = logits.index_select(0, words.rows);
  return words.spread(crf_->forward(scores, words.cu_seqlens, {}, Result::marginals), logits.size(0));
}

}  // namespace stretto
