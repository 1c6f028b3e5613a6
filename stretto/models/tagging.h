#pragma once

#include "stretto/models/text_model.h"

namespace stretto {

// Losses and tags from the logits [T, labels] of a token classification: each token by itself or, if the model has a
// conditional random field, along the words of each sequence: the tokens whose batch["words"] is not negative.

// The training loss of batch["labels"]: summed over tokens with a label (not -100), or over sequences, in which every word
// needs one; counted in tokens with a label, or in words. `weights`: factors of the losses of tags, by which they are also counted
// (nn::cross_entropy); empty: none. REQUIRES: empty with a conditional random field.
Loss tag_loss(const TextModel& model, const Tensor& logits, const Batch& batch, const nn::Context& context,
              const std::vector<double>& weights = {});

// The sum of the losses of each sequence, and of how many tokens or words: two tensors [B] fp64 on the CPU.
struct SequenceLosses {
  Tensor sums, counts;
};
SequenceLosses tag_losses(const TextModel& model, const Tensor& logits, const Batch& batch);

// Tags [T] int64, the most probable ones: of each token, or of the words of each sequence.
Tensor best_tags(const TextModel& model, const Tensor& logits, const Batch& batch);

// The probability of each tag [T, labels] in fp64: of a token, or of a word given the whole sequence.
Tensor tag_probabilities(const TextModel& model, const Tensor& logits, const Batch& batch);

}  // namespace stretto
