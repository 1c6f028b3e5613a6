#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/enum_names.h"
#include "stretto/base/option_names.h"

namespace stretto {

namespace nn {
enum class Kernels;
}

// When beam search ends, as in transformers: as soon as there are num_beams finished sequences (yes); when
// the best running sequence, with its present length, would not be among them (no); when no running sequence
// could be among them with any length up to the limit (never).
enum class EarlyStopping { no, yes, never };
constexpr auto names_of(EarlyStopping) { return std::to_array<std::string_view>({"false", "true", "never"}); }

// How a text is continued. Names, meanings and defaults are those of transformers' GenerationConfig, except
// for the default of max_new_tokens.
struct GenerationOptions {
  std::optional<int64_t> max_new_tokens = {};  // unset: up to max_length, or 256 without one
  std::optional<int64_t> max_length = {};      // including the prompt; used if max_new_tokens is unset
  int64_t min_new_tokens = 0;
  int64_t min_length = 0;                  // including the prompt; used if min_new_tokens is 0
  std::vector<int32_t> eos_token_id = {};  // a sequence ends with any of these
  // A text ends in front of the first occurrence of any of these. Generator, which knows no text, ignores
  // them.
  std::vector<std::string> stop_strings = {};

  // 1: greedy search, which takes the most probable token at each step; more: beam search.
  int64_t num_beams = 1;
  double length_penalty = 1;  // scores of beams are divided by length^length_penalty
  EarlyStopping early_stopping = EarlyStopping::no;

  // Draws tokens at random, with the probabilities softmax(logits / temperature). With beams, the
  // continuations among which a step chooses are drawn, without replacement, instead of the best ones.
  bool do_sample = false;
  double temperature = 1;
  int64_t top_k = 50;    // draws from the k most probable tokens; 0: from all
  double top_p = 1;      // draws from the smallest set of tokens whose probabilities sum to at least top_p
  double min_p = 0;      // draws from tokens that are at least min_p times as probable as the best one
  double typical_p = 1;  // draws from the most typical tokens whose probabilities sum to at least typical_p
  double epsilon_cutoff = 0;  // draws from tokens with at least this probability
  // Draws from tokens with a probability of at least min(eta_cutoff, sqrt(eta_cutoff) * exp(-entropy))
  // (Hewitt et al. 2022); 0: from all.
  double eta_cutoff = 0;
  uint64_t seed = 42;  // random numbers depend only on it, the index of the prompt, the sequence and the step

  // divides positive logits of tokens that the text contains, multiplies negative ones
  double repetition_penalty = 1;
  int64_t no_repeat_ngram_size = 0;           // no n consecutive tokens occur twice in a text; 0: no limit
  std::vector<int32_t> suppress_tokens = {};  // are never generated
  std::vector<int32_t> begin_suppress_tokens = {};       // are not generated as the first new token
  std::vector<std::vector<int32_t>> bad_words_ids = {};  // sequences of tokens that are not completed
  bool renormalize_logits = false;  // beams are scored with the probabilities that the options above leave

  int64_t num_return_sequences = 1;  // continuations per prompt
};

// The maximum number of tokens that are generated for a prompt by a model of max_positions.
int64_t max_new_tokens(const GenerationOptions& options, int64_t prompt_tokens, int64_t max_positions);

// Throws ConfigError, which names an option by `names`, for values out of range and for options that exclude
// each other. `vocab_size` is the model's.
void check(const GenerationOptions& options, int64_t vocab_size, const OptionNames& names = {});

// Parses the JSON of a generation_config.json; `name` is the file's name, for messages. Keys that do not
// change what is generated are skipped. Throws ConfigError for a value of another type and for settings of
// transformers that are not supported; warns of unknown keys.
GenerationOptions parse_generation_config(const nlohmann::json& json, const std::string& name);

// The options of a model folder: those of its generation_config.json. If that has no eos_token_id,
// config.json gives it.
GenerationOptions read_generation_config(const std::filesystem::path& folder);

// A continuation of a prompt.
struct GeneratedText {
  std::string text;                // the text after the prompt, up to a stop string
  std::vector<int32_t> token_ids;  // the new tokens, with those of a stop string and the end token
};

// How texts are continued, and the functions that receive them.
struct TextGeneratorOptions {
  GenerationOptions generation = {};  // read_generation_config() returns those of a folder
  int64_t batch_size = 8;             // the number of prompts that are continued at a time
  // Receives the text that is added to the first continuation of a prompt, token by token, in whole
  // characters that no further token changes: joined, the pieces are the text. Beam search does not call it,
  // because it may discard tokens. Prompts are numbered from 0; several are continued at a time.
  std::function<void(int64_t prompt, std::string_view piece)> on_piece = {};
  // Receives the continuations of a prompt, the best first, in the order of prompts.
  std::function<void(int64_t prompt, const std::string& text, const std::vector<GeneratedText>& found)>
      on_text = {};
  std::function<void()> before_pass = {};  // called before each pass through the model
  nn::Kernels kernels = {};
  OptionNames names = {};  // names of members of GenerationOptions and of this struct in messages
};

}  // namespace stretto
