#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stretto/generate/options.h"
#include "stretto/serve/pipeline.h"

namespace stretto {

// A continuation of a prompt.
struct GeneratedText {
  std::string text;                // the text after the prompt, up to a stop string
  std::vector<int32_t> token_ids;  // the new tokens, with those of a stop string and the end token
};

// How texts are continued, and the functions that receive them.
struct TextGeneratorOptions {
  GenerationOptions generation = {};     // read_generation_config() returns those of a folder
  std::vector<std::string> stop = {};    // strings at whose first occurrence a text ends
  int64_t batch_size = 8;                // the number of prompts that are continued at a time
  at::ScalarType dtype = at::kFloat;     // or at::kBFloat16
  bool allow_nonfinite = false;          // load weights that contain NaN or infinity
  bool choose_matmul_libraries = false;  // see PipelineOptions
  // Receives the text that is added to the first continuation of a prompt, token by token, in whole
  // characters. Beam search does not call it, because it may discard tokens. Prompts are numbered from 0;
  // several are continued at a time.
  std::function<void(int64_t prompt, std::string_view piece)> on_piece = {};
  // Receives the continuations of a prompt, the best first, in the order of prompts.
  std::function<void(int64_t prompt, const std::string& text, const std::vector<GeneratedText>& found)>
      on_text = {};
  OptionNames names = {};  // names of members of GenerationOptions and of this struct in messages
};

// Continues texts with any model folder whose head is that of a causal language model. Not thread-safe.
//
//   TextGenerator generator("runs/lm/model", {.generation = {.max_new_tokens = 20}, .on_text = print});
//   generator.add("Once upon");
//   generator.finish();
class TextGenerator {
 public:
  // Throws ConfigError for a model of another kind and for options out of range, DataError if weights are
  // missing or not finite.
  TextGenerator(const std::filesystem::path& folder, TextGeneratorOptions options,
                const ModelRegistry& models = bundled_models());
  ~TextGenerator();

  // Throws DataError for an empty prompt and for one that is too long for the model.
  void require(const std::string& text) const;

  // Adds a prompt, and generates until there is room for another one. Throws DataError like require();
  // earlier prompts can still be finished afterwards.
  void add(const std::string& text);

  // Generates until all prompts are finished.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stretto
