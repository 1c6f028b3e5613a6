#pragma once

#include "stretto/generate/search.h"

namespace stretto::generate {

// Beam search as in transformers 5: the num_beams most probable sequences run on, and of those that end, the
// num_beams are kept whose sum of log probabilities, divided by length^length_penalty, is largest. A sequence
// counts as ended if it is among the num_beams best of its step.
class BeamSearch : public Search {
 public:
  BeamSearch(const GenerationOptions& options, const SearchEvents& events, SearchStart start);

  std::vector<Continuation> step(const Tensor& logits) override;
  std::vector<std::vector<int32_t>> results() const override;

 private:
  struct Beam {
    std::vector<int32_t> new_tokens;
    float score;  // the sum of log probabilities; of finished ones divided by the power of their length
  };

  Tensor scores(const Tensor& logits) const;  // [beams * vocabulary], of all continuations
  void finish(Beam beam);
  bool can_improve() const;

  const GenerationOptions& options_;
  const SearchEvents& events_;
  SearchStart start_;
  std::vector<Beam> running_, finished_;  // both in descending order of their scores
};

}  // namespace stretto::generate
