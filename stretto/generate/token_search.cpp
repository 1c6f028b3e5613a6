#include "stretto/generate/token_search.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "stretto/generate/logit_rules.h"

namespace stretto::generate {

TokenSearch::TokenSearch(const GenerationOptions& options, const SearchEvents& events, SearchStart start)
    : Search(options, events, std::move(start)),
      new_tokens_(static_cast<size_t>(options.num_return_sequences)),
      running_(new_tokens_.size()) {
  std::iota(running_.begin(), running_.end(), size_t{0});
}

int32_t TokenSearch::choose(size_t sequence, std::span<float> logits) const {
  const auto& added = new_tokens_[sequence];
  apply_rules(options_, text(added), std::ssize(added), logits);
  if (!options_.do_sample) return most_probable(logits);
  return sample(
      options_, logits,
      random_number(options_.seed, start_.index, static_cast<int64_t>(sequence), std::ssize(added)));
}

std::vector<Continuation> TokenSearch::step(const Tensor& logits) {
  const bool is_first = logits.size(0) == 1 && new_tokens_[0].empty();
  const auto width = static_cast<size_t>(logits.size(1));
  std::vector<Continuation> continued;
  std::vector<size_t> running;
  for (size_t i = 0; i < running_.size(); ++i) {
    const size_t row = is_first ? 0 : i, sequence = running_[i];
    std::span<float> own(logits.mutable_data_ptr<float>() + row * width, width);
    std::vector<float> copy;
    if (is_first && running_.size() > 1) {  // sequences share the row of the prompt
      copy.assign(own.begin(), own.end());
      own = copy;
    }
    const int32_t token = choose(sequence, own);
    new_tokens_[sequence].push_back(token);
    if (events_.on_token) events_.on_token(start_.index, static_cast<int64_t>(sequence), token);
    if (has_ended(new_tokens_[sequence])) continue;
    continued.push_back({row, token});
    running.push_back(sequence);
  }
  running_ = std::move(running);
  return continued;
}

}  // namespace stretto::generate
