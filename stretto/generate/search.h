#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "stretto/generate/options.h"
#include "stretto/tensor/tensor.h"

namespace stretto::generate {

// The prompt that a search continues.
struct SearchStart {
  std::vector<int32_t> prompt;
  int64_t index = 0;           // the index of the prompt, on which random numbers depend
  int64_t max_new_tokens = 0;  // REQUIRES: at least 1
};

// Observers of a search; each may be empty.
struct SearchEvents {
  // Returns whether a sequence with these new tokens has ended. It is asked in addition to end tokens and
  // length limits.
  std::function<bool(int64_t prompt, const std::vector<int32_t>& new_tokens)> is_end = {};
  // Called when a token is added to a sequence, 0 <= sequence < num_return_sequences. Beam search does not
  // call it, because it may discard tokens.
  std::function<void(int64_t prompt, int64_t sequence, int32_t token)> on_token = {};
};

// A sequence of the next pass: a sequence of the last pass and the token that is appended to it.
struct Continuation {
  size_t parent;
  int32_t token;
};

// The search for continuations of one prompt. It sees logits only, so it works with any model.
class Search {
 public:
  virtual ~Search() = default;

  // Takes the logits of the next token of each sequence that the last call returned; the first call takes
  // those of the prompt, N = 1. `logits` [N, vocabulary]: fp32, contiguous, on the CPU; they may be modified.
  // Returns the sequences whose next tokens the model must compute; none if the search has ended.
  virtual std::vector<Continuation> step(const Tensor& logits) = 0;

  // Returns the new tokens of num_return_sequences sequences, the best first. REQUIRES: the search has ended.
  virtual std::vector<std::vector<int32_t>> results() const = 0;

 protected:
  Search(const GenerationOptions& options, const SearchEvents& events, SearchStart start)
      : options_(options), events_(events), start_(std::move(start)) {}

  // The prompt and the new tokens of a sequence.
  std::vector<int32_t> text(const std::vector<int32_t>& new_tokens) const;

  // Whether a sequence ends with the last of its new tokens.
  bool has_ended(const std::vector<int32_t>& new_tokens) const;

  const GenerationOptions& options_;
  const SearchEvents& events_;
  SearchStart start_;
};

// Creates the search that the options select. `options` and `events` must outlive it.
std::unique_ptr<Search> make_search(const GenerationOptions& options, const SearchEvents& events,
                                    SearchStart start);

}  // namespace stretto::generate
