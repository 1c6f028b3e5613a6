#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stretto/base/enum_names.h"
#include "stretto/base/option_names.h"

namespace stretto {

// When beam search ends, as in transformers: when there are num_beams finished sequences (yes); when the best
// running one, at its present length, would not be among them (no); or at any length up to the limit (never).
enum class EarlyStopping { no, yes, never };
constexpr auto names_of(EarlyStopping) { return std::to_array<std::string_view>({"false", "true", "never"}); }

// How a text is continued; names, meanings and defaults are those of transformers' GenerationConfig, but for
// the default of max_new_tokens.
struct GenerationOptions {
  std::optional<int64_t> max_new_tokens = {};  // unset: up to max_length, or 256 without one
  std::optional<int64_t> max_length = {};      // with the prompt; for max_new_tokens unset
  int64_t min_new_tokens = 0;
  std::vector<int32_t> eos_token_id = {};  // a sequence ends with any of these

  // The most probable tokens: num_beams 1: one by one (greedy search); else by beam search.
  int64_t num_beams = 1;
  double length_penalty = 1;  // scores of beams are divided by length^length_penalty
  EarlyStopping early_stopping = EarlyStopping::no;

  // Random tokens, of the probabilities of logits / temperature. REQUIRES: num_beams 1.
  bool do_sample = false;
  double temperature = 1;
  int64_t top_k = 50;  // of the k most probable tokens; 0: of all
  double top_p = 1;    // of the fewest ones whose probabilities sum to at least top_p
  double min_p = 0;    // of those whose probability is at least min_p times the largest
  uint64_t seed = 42;  // random numbers depend on it, the index of the prompt and the step alone

  double repetition_penalty = 1;  // divides positive logits of tokens in the text, multiplies negative ones
  int64_t no_repeat_ngram_size = 0;  // no n tokens occur twice in a text; 0: they may

  int64_t num_return_sequences = 1;  // continuations per prompt
};

// The most tokens that are generated behind a prompt, for a model of max_positions.
int64_t max_new_tokens(const GenerationOptions& options, int64_t prompt_tokens, int64_t max_positions);

// Throws ConfigError, which names an option by `names`, for values out of range and for options that exclude
// each other. `vocab_size`: of the model.
void check(const GenerationOptions& options, int64_t vocab_size, const OptionNames& names = {});

// The options in the JSON of a generation_config.json; `name`: of the file, for messages. Keys that do not
// change what is generated are skipped. Throws ConfigError for a value of another type and for settings of
// transformers that would change it and are not supported; warns of unknown keys.
GenerationOptions parse_generation_config(const nlohmann::json& json, const std::string& name);

// The options of a model folder: those of its generation_config.json; eos_token_id, where that has none, by
// config.json.
GenerationOptions read_generation_config(const std::filesystem::path& folder);

}  // namespace stretto
