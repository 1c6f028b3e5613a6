#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stretto/generate/options.h"

namespace stretto::generate {

// Applies the options that penalise or forbid tokens (repetition_penalty, no_repeat_ngram_size,
// bad_words_ids, suppress_tokens, begin_suppress_tokens, min_new_tokens, min_length) to the logits, or log
// probabilities, of the token that follows `text`: the prompt and `new_tokens` tokens.
void apply_rules(const GenerationOptions& options, std::span<const int32_t> text, int64_t new_tokens,
                 std::span<float> logits);

// The token with the largest logit, the first one if there are several. Logits are not NaN.
int32_t most_probable(std::span<const float> logits);

// A token from which sampling draws.
struct Choice {
  int32_t token;
  double logit;            // divided by the temperature; with renormalize_logits, the log of the probability
  double probability = 0;  // up to a common factor
};

// The tokens that top_k, top_p, min_p, typical_p, epsilon_cutoff and eta_cutoff leave, in the order of ids.
std::vector<Choice> choices_of(const GenerationOptions& options, std::span<const float> logits);

// The index of a weight, drawn with probabilities that are proportional to the weights. `draw`: a random
// number, 0 <= draw < 1. REQUIRES: a weight is above 0.
size_t draw_one(std::span<const double> weights, double draw);

// Draws one of choices_of(), with probabilities softmax(logits / temperature).
// `draw`: a random number, 0 <= draw < 1.
int32_t sample(const GenerationOptions& options, std::span<const float> logits, double draw);

// The random number for a step of a sequence of a prompt, 0 <= number < 1.
double random_number(uint64_t seed, int64_t prompt, int64_t sequence, int64_t step);

}  // namespace stretto::generate
