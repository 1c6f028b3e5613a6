#pragma once

#include "stretto/generate/search.h"

namespace stretto::generate {

// Greedy search and sampling: each step appends one token, which is never discarded.
class TokenSearch : public Search {
 public:
  TokenSearch(const GenerationOptions& options, const SearchEvents& events, SearchStart start);

  std::vector<Continuation> step(const Tensor& logits) override;
  std::vector<std::vector<int32_t>> results() const override { return new_tokens_; }

 private:
  int32_t choose(size_t sequence, std::span<float> logits) const;

  std::vector<std::vector<int32_t>> new_tokens_;  // of each sequence
  std::vector<size_t> running_;                   // the sequences of the rows of the next logits
};

}  // namespace stretto::generate
