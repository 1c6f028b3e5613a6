#include "stretto/models/capabilities.h"

#include "stretto/nn/losses.h"

namespace stretto {
namespace {

class TokenLabeller : public SequenceLabeller {
 public:
  Loss loss(const Tensor& logits, const Batch& batch, const nn::Context& context,
            const std::vector<double>& weights) const override {
    const Tensor factors = weights.empty() ? Tensor() : at::tensor(weights, at::kDouble);
    return nn::cross_entropy(logits, batch.at("labels"), {.class_weights = factors}, context);
  }

  SequenceLosses losses(const Tensor& logits, const Batch& batch) const override {
    const Tensor labels = batch.at("labels"), bounds = batch.at("cu_seqlens");
    const Tensor losses = at::cross_entropy_loss(logits.to(at::kDouble), labels, {}, at::Reduction::None);
    const auto by_sequence = [&](const Tensor& rows) {
      const Tensor before = at::cat({at::zeros({1}, rows.options()), rows.cumsum(0)});
      return before.index_select(0, bounds).diff().to(at::kCPU);
    };
    return {by_sequence(losses), by_sequence(labels.ge(0).to(at::kDouble))};
  }

  Tensor best_tags(const Tensor& logits, const Batch&) const override { return logits.argmax(1); }

  Tensor probabilities(const Tensor& logits, const Batch&) const override {
    return at::softmax(logits.to(at::kDouble), 1);
  }
};

}  // namespace

WordReader word_reader_of(const TextModel& model) {
  const WordReader* const own = model.capabilities().word_reader;
  return own != nullptr ? *own : WordReader();
}

const SequenceLabeller& labeller_of(const TextModel& model) {
  static const TokenLabeller of_tokens;
  const SequenceLabeller* const own = model.capabilities().sequence_labeller;
  return own != nullptr ? *own : of_tokens;
}

}  // namespace stretto
