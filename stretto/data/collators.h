#pragma once

#include <optional>

#include "stretto/data/samples.h"

namespace stretto::data {

// Collators for token sequences, which Module::collate of users' modules can call. Samples have int64
// tensors: input_ids [T] and optionally attention_mask [T], token_type_ids [T] and labels ([T'], or a
// scalar); other tensors are stacked as by pad_and_stack. Every batch has an attention_mask [B, T]: 1 for
// tokens, 0 for padding. The names and results are those of transformers' DataCollatorWithPadding,
// DataCollatorForSeq2Seq and DataCollatorForLanguageModeling.

// Pads to the longest sequence of the batch. Throws ConfigError for pad_to_multiple_of below 1, DataError for
// a sample without a sequence input_ids, or without one that the first sample has.
struct CollatorForLongestSequence {
  int64_t pad_token_id = 0;
  int64_t label_pad_token_id = -100;
  int64_t pad_to_multiple_of = 1;  // padded lengths are multiples of this
  bool pad_left = false;           // padding comes before the tokens

  Batch operator()(std::span<const Sample> samples) const;
};

// Like CollatorForLongestSequence, for an encoder and a decoder: labels [T'] are padded to the longest
// labels. If decoder_start_token_id is set, decoder_input_ids [B, T'] are the labels shifted right by one,
// with padding in place of label_pad_token_id. Throws DataError, too, if samples then have no labels [T'].
struct CollatorForSeq2Seq {
  CollatorForLongestSequence padding = {};
  std::optional<int64_t> decoder_start_token_id = std::nullopt;

  Batch operator()(std::span<const Sample> samples) const;
};

// Like CollatorForLongestSequence, for causal language models: labels are the input_ids, with
// label_pad_token_id in the padding. For masked language models, call mask_tokens in the step.
struct CollatorForLanguageModeling {
  CollatorForLongestSequence padding = {};

  Batch operator()(std::span<const Sample> samples) const;
};

// Options of mask_tokens.
struct TokenMasking {
  int64_t mask_token_id = 0;
  int64_t vocab_size = 0;
  std::vector<int64_t> special_ids = {};  // tokens that are never chosen, such as [CLS], [SEP] and padding
  double probability = 0.15;              // probability that a token is chosen
  double mask_share = 0.8;                // fraction of the chosen tokens that mask_token_id replaces
  double random_share = 0.1;              // fraction that a random token replaces; the others are unchanged
};

// The result of mask_tokens, int64 like its input.
struct MaskedTokens {
  Tensor input_ids;  // [B, T]
  Tensor labels;     // [B, T]: the tokens that were chosen, -100 elsewhere
};

// Chooses tokens for masked language modeling (Devlin et al. 2019). The treatment of a token is a function of
// `key`, its sample and its index among the sample's tokens that may be chosen, and thus independent of
// ranks, batches and padding. `key` must differ between epochs and be the same in all evaluations, as in a
// step:
//   mask_tokens(batch.at("input_ids"), batch.sample_ids, context.forward.key, masking)
// input_ids: [B, T] int64. Throws ConfigError for options out of range, ShapeError if there are not as many
// sample ids as sequences.
MaskedTokens mask_tokens(const Tensor& input_ids, std::span<const int64_t> sample_ids, uint64_t key,
                         const TokenMasking& masking);

}  // namespace stretto::data
