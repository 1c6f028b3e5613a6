#pragma once

#include <memory>

#include "stretto/models/text_model.h"

namespace stretto {

namespace nn {
struct Crf;
template <class M>
class Sharded;
}  // namespace nn

// Tags the words of each sequence together, by a conditional random field (nn/crf.h). Losses are counted in
// words; every word needs a label. Tokens that are not words have tag 0, with probability 0.
class CrfLabeller : public SequenceLabeller {
 public:
  explicit CrfLabeller(std::shared_ptr<const nn::Sharded<nn::Crf>> crf) : crf_(std::move(crf)) {}

  // REQUIRES: no weights.
  Loss loss(const Tensor& logits, const Batch& batch, const nn::Context& context,
            const std::vector<double>& weights) const override;
  SequenceLosses losses(const Tensor& logits, const Batch& batch) const override;
  Tensor best_tags(const Tensor& logits, const Batch& batch) const override;
  Tensor probabilities(const Tensor& logits, const Batch& batch) const override;

 private:
  std::shared_ptr<const nn::Sharded<nn::Crf>> crf_;
};

}  // namespace stretto
