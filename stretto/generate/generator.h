#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "stretto/generate/options.h"
#include "stretto/generate/search.h"
#include "stretto/models/text_model.h"
#include "stretto/nn/key_value_cache.h"

namespace stretto::generate {

// Receives the new tokens of each sequence that was generated for a prompt, the best sequence first. Called
// in the order of prompts.
using OnGenerated = std::function<void(int64_t prompt, const std::vector<std::vector<int32_t>>& new_tokens)>;

struct GeneratorParts {
  const TextModel& model;  // REQUIRES: parameters on the CPU, not changed meanwhile
  GenerationOptions options = {};
  int64_t batch_size = 1;  // prompts that are continued at a time
  SearchEvents events = {};
  OnGenerated on_generated = {};
  nn::Kernels kernels = nn::Kernels::fast;
  OptionNames names = {};  // of members of GenerationOptions, for messages
};

// Continues prompts of token ids with any model that is a CausalDecoder and whose attention has the cache of
// nn::Context. Prompts of different lengths are read together without padding; where one has ended, the next
// one enters. What is generated for a prompt does not depend on the others, but for rounding in sums. Not
// thread-safe.
//
//   Generator generator({.model = *model, .options = {.max_new_tokens = 20}, .on_generated = print});
//   for (const auto& ids : prompts) generator.add(ids);
//   generator.finish();
class Generator {
 public:
  // Throws ConfigError for a model that is no causal decoder, and as check() for the options.
  explicit Generator(GeneratorParts parts);

  // Throws DataError for an empty prompt, one that leaves no position for a new token, and ids outside of the
  // vocabulary.
  void require_prompt(const std::vector<int32_t>& prompt) const;

  // Takes the next prompt, and generates until there is room for another one. Throws DataError as
  // require_prompt, and for logits that are NaN.
  void add(std::vector<int32_t> prompt);

  // Generates until all prompts have ended.
  void finish();

 private:
  struct Sequence {
    nn::KeyValueCache::Rows rows;  // of its tokens that were read
    std::vector<int32_t> unread;
  };
  struct Request {
    int64_t index;
    std::unique_ptr<Search> search;
    std::vector<Sequence> sequences;
  };

  Tensor read();  // the logits behind each sequence
  void advance(Request& request, const Tensor& logits);
  void pass();
  void deliver();

  GeneratorParts parts_;
  const CausalDecoder* decoder_;
  nn::KeyValueCache cache_;
  std::vector<Request> requests_;
  std::map<int64_t, std::vector<std::vector<int32_t>>> ended_;  // those that wait for a prompt before them
  int64_t added_ = 0, delivered_ = 0;                           // prompts
};

}  // namespace stretto::generate
