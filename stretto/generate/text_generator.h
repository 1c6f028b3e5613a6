#pragma once

#include <memory>
#include <optional>
#include <string>

#include "stretto/generate/options.h"

namespace stretto {

class TextModel;

namespace text {
class Tokenizer;
}

// Continues texts with a causal decoder and its tokenizer; load_text_generator (serve/pipeline.h) creates one
// from a model folder. Not thread-safe.
//
//   TextGenerator generator(*model, tokenizer, {.generation = {.max_new_tokens = 20}, .on_text = print});
//   generator.add("Once upon");
//   generator.finish();
class TextGenerator {
 public:
  // The model computes on the device of its parameters, which must not change meanwhile. `owner`: what owns
  // the model and the tokenizer; null: they outlive this object. If the options have no eos_token_id, the
  // tokenizer's eos_token ends texts. Throws ConfigError like Generator, and for empty stop strings.
  TextGenerator(const TextModel& model, const text::Tokenizer& tokenizer, TextGeneratorOptions options,
                std::shared_ptr<const void> owner = nullptr);
  ~TextGenerator();

  // Throws DataError for an empty prompt and for one that is too long for the model.
  void require(const std::string& text) const;

  // Adds a prompt, and generates until there is room for another one. `number`: of the prompt, on which
  // random numbers depend, larger than those of earlier prompts; by default the next one. Throws DataError
  // like require(); earlier prompts can still be finished afterwards.
  void add(const std::string& text, std::optional<int64_t> number = {});

  // Generates until all prompts are finished.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stretto
