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
  std::string text;                // what follows the prompt; ends in front of a stop string
  std::vector<int32_t> token_ids;  // the new tokens, with those of a stop string and the end token
};

// How texts are continued, and who receives them.
struct TextGeneratorOptions {
  GenerationOptions generation = {};     // read_generation_config gives those of a folder
  std::vector<std::string> stop = {};    // strings at whose first occurrence a text ends
  int64_t batch_size = 8;                // prompts that are continued at a time
  at::ScalarType dtype = at::kFloat;     // or at::kBFloat16
  bool allow_nonfinite = false;          // load weights that hold NaN or infinity
  bool choose_matmul_libraries = false;  // see PipelineOptions
  // Receives what is added to the first continuation of a prompt, token by token and never a part of a
  // character; not in beam search, which may discard tokens. Prompts count from 0; several are continued at a
  // time.
  std::function<void(int64_t prompt, std::string_view piece)> on_piece = {};
  // Receives the continuations of a prompt, the best first, in the order of prompts.
  std::function<void(int64_t prompt, const std::string& text, const std::vector<GeneratedText>& found)>
      on_text = {};
  OptionNames names = {};  // of members of GenerationOptions and of this, for messages
};

// Continues texts with the model in a folder: any whose head is that of a causal language model. Not
// thread-safe.
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

  // Takes the next prompt, and generates until there is room for another one. Throws DataError as require();
  // the prompts before it can then still be finished.
  void add(const std::string& text);

  // Generates until all prompts have ended.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stretto
