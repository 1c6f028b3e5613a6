#include "stretto/generate/logit_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "stretto/base/philox.h"

namespace stretto::generate {
namespace {

constexpr float never = -std::numeric_limits<float>::infinity();

// Forbids each token that would complete n tokens which the text contains already.
void forbid_repetition(std::span<const int32_t> text, size_t n, std::span<float> logits) {
  if (text.size() + 1 < n) return;
  const auto last = text.last(n - 1);
  for (size_t i = 0; i + n <= text.size(); ++i)
    if (std::ranges::equal(text.subspan(i, n - 1), last))
      logits[static_cast<size_t>(text[i + n - 1])] = never;
}

// Forbids the last token of each word whose other tokens are the end of the text. A word that is an end token
// is allowed.
void forbid_words(const GenerationOptions& options, std::span<const int32_t> text, std::span<float> logits) {
  for (const auto& word : options.bad_words_ids) {
    const auto beginning = std::span(word).first(word.size() - 1);
    if (beginning.size() > text.size() || !std::ranges::equal(text.last(beginning.size()), beginning))
      continue;
    const bool is_end =
        word.size() == 1 && std::ranges::find(options.eos_token_id, word[0]) != options.eos_token_id.end();
    if (!is_end) logits[static_cast<size_t>(word.back())] = never;
  }
}

void forbid(const std::vector<int32_t>& tokens, std::span<float> logits) {
  for (const int32_t token : tokens) logits[static_cast<size_t>(token)] = never;
}

// Each of the following keeps at least `least` choices.

void keep_top_k(std::vector<Choice>& choices, size_t k, size_t least) {
  k = k == 0 ? choices.size() : std::max(k, least);
  if (k >= choices.size()) return;
  const auto by_logit = [](const Choice& a, const Choice& b) { return a.logit > b.logit; };
  const auto last = choices.begin() + static_cast<std::ptrdiff_t>(k) - 1;
  std::ranges::nth_element(choices, last, by_logit);
  const double smallest = last->logit;
  std::erase_if(choices, [&](const Choice& one) { return one.logit < smallest; });
}

// Sets the probabilities of the choices.
void normalise(std::vector<Choice>& choices) {
  double largest = choices[0].logit, sum = 0;
  for (const Choice& one : choices) largest = std::max(largest, one.logit);
  for (Choice& one : choices) sum += one.probability = std::exp(one.logit - largest);
  for (Choice& one : choices) one.probability /= sum;
}

// Keeps the most probable tokens: removes the least probable ones that together have a probability of at most
// 1 - p.
void keep_top_p(std::vector<Choice>& choices, double p, size_t least) {
  if (p >= 1) return;
  std::ranges::sort(choices, [](const Choice& a, const Choice& b) { return a.probability < b.probability; });
  double sum = 0;
  size_t removed = 0;
  while (removed + least < choices.size() && (sum += choices[removed].probability) <= 1 - p) ++removed;
  choices.erase(choices.begin(), choices.begin() + static_cast<std::ptrdiff_t>(removed));
}

// Removes tokens that are less probable than `smallest`.
void keep_from(std::vector<Choice>& choices, double smallest, size_t least) {
  std::ranges::sort(choices, std::greater{}, &Choice::probability);
  while (choices.size() > least && choices.back().probability < smallest) choices.pop_back();
}

void keep_min_p(std::vector<Choice>& choices, double p, size_t least) {
  if (p > 0) keep_from(choices, p * std::ranges::max(choices, {}, &Choice::probability).probability, least);
}

// In nats.
double entropy_of(const std::vector<Choice>& choices) {
  double entropy = 0;
  for (const Choice& one : choices)
    if (one.probability > 0) entropy -= one.probability * std::log(one.probability);
  return entropy;
}

// Locally typical sampling (Meister et al. 2022): keeps the tokens whose information is closest to its
// expectation, as many as together have a probability of at least `mass`.
void keep_typical(std::vector<Choice>& choices, double mass, size_t least) {
  if (mass >= 1) return;
  normalise(choices);
  const double entropy = entropy_of(choices);
  const auto distance = [&](const Choice& one) { return std::abs(-std::log(one.probability) - entropy); };
  std::ranges::sort(choices, {}, distance);
  double sum = 0;
  size_t last = 0;
  while (last + 1 < choices.size() && (sum += choices[last].probability) < mass) ++last;
  const double most = distance(choices[last]);
  while (choices.size() > least && distance(choices.back()) > most) choices.pop_back();
}

void keep_epsilon(std::vector<Choice>& choices, double epsilon, size_t least) {
  if (epsilon <= 0) return;
  normalise(choices);
  keep_from(choices, epsilon, least);
}

void keep_eta(std::vector<Choice>& choices, double eta, size_t least) {
  if (eta <= 0) return;
  normalise(choices);
  keep_from(choices, std::min(eta, std::sqrt(eta) * std::exp(-entropy_of(choices))), least);
}

}  // namespace

void apply_rules(const GenerationOptions& options, std::span<const int32_t> text, int64_t new_tokens,
                 std::span<float> logits) {
  if (options.repetition_penalty != 1) {
    const auto penalty = static_cast<float>(options.repetition_penalty);
    for (const int32_t token : std::set<int32_t>(text.begin(), text.end())) {
      float& logit = logits[static_cast<size_t>(token)];
      logit = logit < 0 ? logit * penalty : logit / penalty;
    }
  }
  if (options.no_repeat_ngram_size > 0)
    forbid_repetition(text, static_cast<size_t>(options.no_repeat_ngram_size), logits);
  forbid_words(options, text, logits);
  forbid(options.suppress_tokens, logits);
  if (new_tokens == 0) forbid(options.begin_suppress_tokens, logits);
  if (options.min_new_tokens > 0 ? new_tokens < options.min_new_tokens
                                 : std::ssize(text) < options.min_length)
    forbid(options.eos_token_id, logits);
}

int32_t most_probable(std::span<const float> logits) {
  constexpr size_t lanes = 16;  // which a compiler compares together
  std::array<float, lanes> largest;
  largest.fill(never);
  size_t i = 0;
  for (; i + lanes <= logits.size(); i += lanes)
    for (size_t lane = 0; lane < lanes; ++lane) largest[lane] = std::max(largest[lane], logits[i + lane]);
  float most = *std::ranges::max_element(largest);
  for (; i < logits.size(); ++i) most = std::max(most, logits[i]);
  return static_cast<int32_t>(std::ranges::find(logits, most) - logits.begin());
}

std::vector<Choice> choices_of(const GenerationOptions& options, std::span<const float> logits) {
  std::vector<Choice> choices;
  choices.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] != never) choices.push_back({static_cast<int32_t>(i), logits[i] / options.temperature});
  if (choices.empty()) return choices;
  // Beams need a choice that does not end the text; without end tokens, transformers keeps two choices.
  const size_t least = options.num_beams > 1 ? std::max<size_t>(1, options.eos_token_id.size()) + 1 : 1;
  keep_top_k(choices, static_cast<size_t>(options.top_k), least);
  normalise(choices);
  keep_top_p(choices, options.top_p, least);
  keep_min_p(choices, options.min_p, least);
  keep_typical(choices, options.typical_p, least);
  keep_epsilon(choices, options.epsilon_cutoff, least);
  keep_eta(choices, options.eta_cutoff, least);
  if (options.renormalize_logits) {
    normalise(choices);
    for (Choice& one : choices) one.logit = std::log(one.probability);
  }
  // The order of ids makes the chosen token independent of rounding in the logits.
  std::ranges::sort(choices, {}, &Choice::token);
  return choices;
}

size_t draw_one(std::span<const double> weights, double draw) {
  double left = draw * std::accumulate(weights.begin(), weights.end(), 0.0);
  size_t last = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    last = i;
    left -= weights[i];
    if (left < 0) break;
  }
  return last;
}

int32_t sample(const GenerationOptions& options, std::span<const float> logits, double draw) {
  const std::vector<Choice> choices = choices_of(options, logits);
  if (choices.empty()) return 0;
  std::vector<double> weights;
  for (const Choice& one : choices) weights.push_back(one.probability);
  return choices[draw_one(weights, draw)].token;
}

double random_number(uint64_t seed, int64_t prompt, int64_t sequence, int64_t step) {
  const auto index = static_cast<uint64_t>(prompt);
  const auto words = philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                             static_cast<uint32_t>(sequence), static_cast<uint32_t>(step)},
                            seed);
  const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace stretto::generate
