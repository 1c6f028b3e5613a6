#include "stretto/models/tagging.h"

#include "stretto/nn/crf.h"
#include "stretto/nn/losses.h"

namespace stretto {
namespace {

using Result = nn::Crf::Result;

// The words of a batch as sequences by themselves.
struct Words {
  explicit Words(const Batch& batch) {
    const Tensor is_word = batch.at("words").ge(0);
    rows = is_word.nonzero().squeeze(1);
    const Tensor before = at::cat({at::zeros({1}, rows.options()), is_word.cumsum(0)});
    cu_seqlens = before.index_select(0, batch.at("cu_seqlens"));
  }
  Tensor rows;        // [words]
  Tensor cu_seqlens;  // [B + 1]
};

Tensor run(const TextModel& model, const Words& words, const Tensor& logits, const Tensor& labels,
           Result result) {
  return model.crf()->forward(logits.index_select(0, words.rows), words.cu_seqlens, labels, result);
}

// `rows` [words, ...] at their places among `tokens` rows of zeros.
Tensor spread(const Words& words, const Tensor& rows, int64_t tokens) {
  std::vector<int64_t> sizes = rows.sizes().vec();
  sizes[0] = tokens;
  return at::zeros(sizes, rows.options()).index_copy_(0, words.rows, rows);
}

}  // namespace

Loss tag_loss(const TextModel& model, const Tensor& logits, const Batch& batch, const nn::Context& context,
              const std::vector<double>& weights) {
  if (!model.crf()) {
    const Tensor factors = weights.empty() ? Tensor() : at::tensor(weights, at::kDouble);
    return nn::cross_entropy(logits, batch.at("labels"), {.class_weights = factors}, context);
  }
  const Words words(batch);
  const Tensor labels = batch.at("labels").index_select(0, words.rows);
  return {run(model, words, logits, labels, Result::losses).sum(), words.rows.numel()};
}

SequenceLosses tag_losses(const TextModel& model, const Tensor& logits, const Batch& batch) {
  const Tensor labels = batch.at("labels"), bounds = batch.at("cu_seqlens");
  if (model.crf()) {
    const Words words(batch);
    const Tensor sums = run(model, words, logits, labels.index_select(0, words.rows), Result::losses);
    return {sums.to(at::kCPU, at::kDouble), words.cu_seqlens.diff().to(at::kCPU, at::kDouble)};
  }
  const Tensor losses = at::cross_entropy_loss(logits.to(at::kDouble), labels, {}, at::Reduction::None);
  const auto by_sequence = [&](const Tensor& rows) {
    const Tensor before = at::cat({at::zeros({1}, rows.options()), rows.cumsum(0)});
    return before.index_select(0, bounds).diff().to(at::kCPU);
  };
  return {by_sequence(losses), by_sequence(labels.ge(0).to(at::kDouble))};
}

Tensor best_tags(const TextModel& model, const Tensor& logits, const Batch& batch) {
  if (!model.crf()) return logits.argmax(1);
  const Words words(batch);
  return spread(words, run(model, words, logits, {}, Result::best_tags), logits.size(0));
}

Tensor tag_probabilities(const TextModel& model, const Tensor& logits, const Batch& batch) {
  if (!model.crf()) return at::softmax(logits.to(at::kDouble), 1);
  const Words words(batch);
  return spread(words, run(model, words, logits, {}, Result::marginals), logits.size(0));
}

}  // namespace stretto
