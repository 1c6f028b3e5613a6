#pragma once

#include <cstdint>
#include <span>

#include "stretto/generate/options.h"

namespace stretto::generate {

// Applies repetition_penalty, no_repeat_ngram_size, min_new_tokens and min_length to the logits, or log
// probabilities, of the token that follows `text`: the prompt and `new_tokens` tokens.
void apply_rules(const GenerationOptions& options, std::span<const int32_t> text, int64_t new_tokens,
                 std::span<float> logits);

// Draws a token with the probabilities that temperature, top_k, top_p, min_p and typical_p give the logits.
// `draw`: a random number, 0 <= draw < 1.
int32_t sample(const GenerationOptions& options, std::span<const float> logits, double draw);

// The random number for a step of a sequence of a prompt, 0 <= number < 1.
double random_number(uint64_t seed, int64_t prompt, int64_t sequence, int64_t step);

}  // namespace stretto::generate
