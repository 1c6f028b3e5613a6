#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "stretto/generate/options.h"
#include "stretto/tensor/tensor.h"

namespace stretto::generate {

// What a search continues.
struct SearchStart {
  std::vector<int32_t> prompt;
  int64_t index = 0;           // of the prompt: with it random numbers are drawn
  int64_t max_new_tokens = 0;  // REQUIRES: at least 1
};

// Observers of a search; each may be empty.
struct SearchEvents {
  // Whether a sequence of these new tokens behind a prompt has ended, besides by its last token or its
  // length.
  std::function<bool(int64_t prompt, const std::vector<int32_t>& new_tokens)> is_end = {};
  // A token was added to a sequence, below num_return_sequences; not in beam search, which may discard it.
  std::function<void(int64_t prompt, int64_t sequence, int32_t token)> on_token = {};
};

// A sequence that goes on: one of those of the pass before, and a token.
struct Continuation {
  size_t parent;
  int32_t token;
};

// The search for continuations of one prompt. It sees logits only, so it works with any model.
class Search {
 public:
  virtual ~Search() = default;

  // `logits` [N, vocabulary] fp32, contiguous on the CPU, which may be changed: of the token behind each of
  // the sequences that the call before returned; first of the prompt alone, N = 1. Returns the sequences of
  // which the model reads the next token; none: the search has ended.
  virtual std::vector<Continuation> step(const Tensor& logits) = 0;

  // After the end: the new tokens of num_return_sequences sequences, the best first.
  virtual std::vector<std::vector<int32_t>> results() const = 0;
};

// The search that the options ask for. `options` and `events` must outlive it.
std::unique_ptr<Search> make_search(const GenerationOptions& options, const SearchEvents& events,
                                    SearchStart start);

}  // namespace stretto::generate
