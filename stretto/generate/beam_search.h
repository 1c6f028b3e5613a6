#pragma once

#include "stretto/generate/search.h"

namespace stretto::generate {

// Beam search as in transformers 5: the num_beams most probable sequences are continued. Of the sequences
// that have ended, it keeps the num_beams with the largest sum of log probabilities divided by
// length^length_penalty. A sequence counts as ended only if it is among the num_beams best of its step.
class BeamSearch : public Search {
 public:
  BeamSearch(const GenerationOptions& options, const SearchEvents& events, SearchStart start);

  std::vector<Continuation> step(const Tensor& logits) override;
  std::vector<std::vector<int32_t>> results() const override;

 private:
  struct Beam {
    std::vector<int32_t> new_tokens;
    float score;  // the sum of log probabilities; of finished beams, divided by length^length_penalty
  };

  Tensor scores(const Tensor& logits) const;  // [beams * vocabulary], of all continuations
  void finish(Beam beam);
  bool can_improve() const;

  std::vector<Beam> running_, finished_;  // both in descending order of their scores
};

}  // namespace stretto::generate
