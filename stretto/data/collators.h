#pragma once

#include <optional>

#include "stretto/data/samples.h"

namespace stretto::data {

// Collators for token sequences, to be called by Module::collate of users' modules. Samples hold int64 tensors: input_ids [T], and any
// of attention_mask [T], token_type_ids [T], labels ([T'], or a scalar); others are stacked as by pad_and_stack. Every batch has an
// attention_mask [B, T]: 1 for tokens, 0 for padding. The names and results are those of transformers' DataCollatorWithPadding,
// DataCollatorForSeq2Seq and DataCollatorForLanguageModeling.

// Pads to the longest sequence of the batch.
struct CollatorForLongestSequence {
  int64_t pad_token_id = 0;
  int64_t label_pad_token_id = -100;
  int64_t pad_to_multiple_of = 1;  // of the length of every sequence that is padded
  bool pad_left = false;           // padding comes before the tokens

  Batch operator()(std::span<const Sample> samples) const;
};

// The same for an encoder and a decoder: labels [T'] are padded to their own longest, and where decoder_start_token_id is set,
// decoder_input_ids [B, T'] are the labels moved right by one, with padding in place of label_pad_token_id.
struct CollatorForSeq2Seq {
  CollatorForLongestSequence padding = {};
  std::optional<int64_t> decoder_start_token_id = std::nullopt;

  Batch operator()(std::span<const Sample> samples) const;
};

// The same for causal language models: labels are the input_ids, and label_pad_token_id in the padding. For masked language models,
// call mask_tokens in the step.
struct CollatorForLanguageModeling {
  CollatorForLongestSequence padding = {};

  Batch operator()(std::span<const Sample> samples) const;
};

struct TokenMasking {
  int64_t mask_token_id = 0;
  int64_t vocab_size = 0;
  std::vector<int64_t> special_ids = {};  // tokens that are never chosen, such as [CLS], [SEP] and padding
  double probability = 0.15;              // of a token to be chosen
  double mask_share = 0.8;                // of the chosen ones: replaced by mask_token_id
  double random_share = 0.1;  // of the chosen ones: replaced by a random token; the others stay as they are
};

struct MaskedTokens {
  Tensor input_ids;  // [B, T]
  Tensor labels;     // [B, T]: the tokens that were chosen, -100 elsewhere
};

// Chooses tokens for masked language modeling (Devlin et al. 2019). What happens to a token depends on `key`, its sample and its
// place among the tokens of the sample that may be chosen, so that it does not depend on ranks, batches and padding. In a step:
//   mask_tokens(batch.at("input_ids"), batch.sample_ids, context.forward.key, masking)
// where the key is another in each epoch, and the same in all evaluations. input_ids: [B, T] int64. Throws ConfigError for options out
// of range, ShapeError if there are not as many sample ids as sequences.
MaskedTokens mask_tokens(const Tensor& input_ids, std::span<const int64_t> sample_ids, uint64_t key,
                         const TokenMasking& masking);

}  // namespace stretto::data
