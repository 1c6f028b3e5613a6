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
}  // namespace stretto

namespace stretto::generate {

// Continues texts with a causal decoder and its tokenizer. Not thread-safe.
//
//   TextWriter writer(*model, tokenizer, {.generation = {.max_new_tokens = 20}, .on_text = print});
//   writer.add("Once upon");
//   writer.finish();
class TextWriter {
 public:
  // `model` and `tokenizer` must outlive this object; parameters must not change meanwhile. If the options
  // have no eos_token_id, the tokenizer's eos_token ends texts. Throws ConfigError like Generator, and for
  // empty stop strings.
  TextWriter(const TextModel& model, const text::Tokenizer& tokenizer, TextWriterOptions options);
  ~TextWriter();

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

}  // namespace stretto::generate
