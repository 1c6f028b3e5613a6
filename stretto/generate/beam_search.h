#pragma once

#include "stretto/generate/search.h"

namespace stretto::generate {

// Beam search as in transformers 5: the num_beams most probable sequences are continued; with do_sample,
// those of a random sample of continuations. Of the sequences that have ended, it keeps the num_beams with
// the largest sum of log probabilities divided by length^length_penalty. A sequence counts as ended only if
// it is among the num_beams best of its step.
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

  // A continuation of a beam; `score` is that of the beam which it would be.
  struct Candidate {
    Continuation next;
    float score;
  };

  Tensor scores(const Tensor& logits) const;  // [beams, vocabulary], log probabilities of next tokens
  std::vector<Candidate> best(const Tensor& scores, int64_t count) const;
  std::vector<Candidate> drawn(const Tensor& scores, int64_t count) const;
  void finish(Beam beam);
  bool can_improve() const;

  std::vector<Beam> running_, finished_;  // both in descending order of their scores
  int64_t steps_ = 0;
};

}  // namespace stretto::generate
