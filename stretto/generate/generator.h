#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "stretto/generate/options.h"
#include "stretto/generate/search.h"
#include "stretto/models/text_model.h"
#include "stretto/nn/key_value_cache.h"

namespace stretto::generate {

// Receives the new tokens of each sequence that was generated for a prompt, the best sequence first. Called
// in the order of prompts.
using OnGenerated = std::function<void(int64_t prompt, const std::vector<std::vector<int32_t>>& new_tokens)>;

// What a Generator computes with, and where its results go.
struct GeneratorParts {
  const TextModel& model;  // computes on the device of its parameters, which must not change meanwhile
  GenerationOptions options = {};
  int64_t batch_size = 1;  // the number of prompts that are continued at a time
  SearchEvents events = {};
  OnGenerated on_generated = {};
  // The number of tokens of prompts that a pass reads, at most, which limits the memory of its activations.
  int64_t prompt_tokens_per_pass = 1024;
  std::function<void()> before_pass = {};  // called before each pass through the model
  nn::Kernels kernels = nn::Kernels::fast;
  OptionNames names = {};  // names of the members of GenerationOptions in messages
};

// Continues prompts of token ids with any model that is a CausalDecoder and whose attention has the cache of
// nn::Context. Prompts of different lengths are processed together without padding; when one is finished, the
// next one takes its place. A beginning that a prompt shares with one that is being continued, or with the
// one that was finished last, is read once. What is generated for a prompt does not depend on the other
// prompts, except for rounding. Not thread-safe.
//
//   Generator generator({.model = *model, .options = {.max_new_tokens = 20}, .on_generated = print});
//   for (size_t i = 0; i < prompts.size(); ++i) generator.add(prompts[i], i);
//   generator.finish();
class Generator {
 public:
  // Throws ConfigError for a model that is not a causal decoder and for options that check() refuses.
  explicit Generator(GeneratorParts parts);

  // Throws DataError for an empty prompt, a prompt that leaves no position for a new token, and ids outside
  // the vocabulary.
  void require_prompt(const std::vector<int32_t>& prompt) const;

  // Adds a prompt, and generates until there is room for another one. `index`: of the prompt, on which random
  // numbers depend; above those of earlier prompts. Throws DataError for a prompt that require_prompt()
  // refuses and for logits that are NaN.
  void add(std::vector<int32_t> prompt, int64_t index);

  // Generates until all prompts are finished.
  void finish();

 private:
  struct Sequence {
    nn::KeyValueCache::Rows rows;  // the rows of the tokens that the model has read
    std::vector<int32_t> unread;
  };
  // A prompt, and the rows of the part that the model has read.
  struct Prompt {
    std::vector<int32_t> tokens;
    nn::KeyValueCache::Rows rows;
    bool is_read() const { return rows.size() == tokens.size(); }
  };
  struct Request {
    int64_t index;
    std::unique_ptr<Search> search;
    Prompt prompt;
    std::vector<Sequence> sequences;
  };

  // The number of tokens of the longest text.
  int64_t longest() const;
  bool begin(Request& request, std::span<const Request> earlier);
  int64_t tokens_to_read(const Request& request, int64_t prompt_tokens_left) const;
  std::vector<Request*> read(Tensor& logits);
  void advance(Request& request, const Tensor& logits);
  void end(Request& request);
  void pass();
  void deliver();

  GeneratorParts parts_;
  const CausalDecoder* decoder_;
  at::Device device_;
  nn::KeyValueCache cache_;
  std::vector<Request> requests_;
  Prompt last_;                  // of the request that has ended last
  std::deque<int64_t> awaited_;  // the prompts whose results were not delivered yet
  // results that wait for the result of an earlier prompt
  std::map<int64_t, std::vector<std::vector<int32_t>>> ended_;
};

}  // namespace stretto::generate
