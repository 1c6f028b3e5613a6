#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "stretto/programs/arguments/inference_arguments.h"
#include "stretto/programs/arguments/launch_arguments.h"

namespace stretto::arguments {

// The arguments of `stretto generate`. The defaults of options of generation are those of the model folder.
struct GenerateArguments : InferenceArguments {
  GenerateArguments() : InferenceArguments(8) {}

  int ranks = 1;
  bool json = false;
  std::vector<std::string> stop;
  std::optional<int64_t> max_new_tokens, min_new_tokens, num_beams, top_k, no_repeat_ngram_size,
      num_return_sequences;
  std::optional<bool> do_sample;
  std::optional<double> temperature, top_p, min_p, typical_p, repetition_penalty, length_penalty;
  std::optional<std::string> early_stopping;
  std::optional<uint64_t> seed;
};

inline void add_generation_options(CLI::App& verb, GenerateArguments& arguments) {
  const auto number = [&](const char* name, std::optional<double>& target, const char* type,
                          const char* help) {
    verb.add_option(name, target, help)->type_name(type)->check(a_number);
  };
  const auto count = [&](const char* name, auto& target, const char* type, int64_t least, const char* help) {
    constexpr int64_t most = 1'000'000'000;
    verb.add_option(name, target, help)->type_name(type)->check(whole_number_from(least, most));
  };
  count("--max-new-tokens", arguments.max_new_tokens, "N", 1,
        "The most tokens that are added to a prompt (default: 256)");
  count("--min-new-tokens", arguments.min_new_tokens, "N", 0, "No end token before so many new tokens");
  verb.add_option("--stop", arguments.stop,
                  "A text ends in front of this string, however its tokens are cut; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  auto* sampled = verb.add_flag_callback(
      "--do-sample", [&arguments] { arguments.do_sample = true; },
      "Draw random tokens by their probabilities (default: take the most probable ones)");
  verb.add_flag_callback(
          "--no-do-sample", [&arguments] { arguments.do_sample = false; },
          "Take the most probable tokens, though the model's generation_config.json has do_sample")
      ->excludes(sampled);
  number("--temperature", arguments.temperature, "T", "Sampling: logits are divided by T (default: 1)");
  count("--top-k", arguments.top_k, "K", 0,
        "Sampling: of the K most probable tokens; 0: of all (default: 50)");
  number("--top-p", arguments.top_p, "P",
         "Sampling: of the fewest tokens whose probabilities sum to at least P (default: 1)");
  number("--min-p", arguments.min_p, "P",
         "Sampling: of tokens with at least P times the largest probability (default: 0)");
  number("--typical-p", arguments.typical_p, "P",
         "Sampling: of the most typical tokens whose probabilities sum to at least P (default: 1)");
  verb.add_option("--seed", arguments.seed, "Sampling: equal seeds give equal texts (default: 42)")
      ->type_name("N")
      ->check(whole_number_from(0, std::numeric_limits<int64_t>::max()));
  count("--num-beams", arguments.num_beams, "N", 1, "Beam search with N beams (default: 1, greedy search)");
  number("--length-penalty", arguments.length_penalty, "X",
         "Beam search: scores are divided by length^X (default: 1)");
  verb.add_option("--early-stopping", arguments.early_stopping,
                  "Beam search ends with N finished texts (true), when the best running one is worse at its "
                  "present length (false, the default), or at any length (never)")
      ->check(CLI::IsMember({"false", "true", "never"}))
      ->type_name("WHEN");
  number("--repetition-penalty", arguments.repetition_penalty, "X",
         "Above 1: tokens of the text so far become less probable (default: 1)");
  count("--no-repeat-ngram-size", arguments.no_repeat_ngram_size, "N", 0,
        "No N tokens occur twice in a text; 0: they may (default: 0)");
  count("--num-return-sequences", arguments.num_return_sequences, "N", 1,
        "Texts per prompt, of sampling or of the best beams (default: 1)");
}

inline void add_generate_arguments(CLI::App& verb, GenerateArguments& arguments) {
  add_model_and_inputs(verb, arguments, "A folder with a language model, such as RUN/model",
                       "A prompt, in place of --input; may be repeated");
  verb.add_flag(
      "--json", arguments.json,
      "Print a line of JSON per generated text: text, generated_text and token_ids, the new tokens");
  add_generation_options(verb, arguments);
  add_inference_options(verb, arguments,
                        "Prompts that a rank continues at a time; texts do not depend on it");
  add_ranks_option(
      verb, arguments.ranks,
      "Ranks that share the prompts; with more than one, texts are printed when they are complete "
      "(default: 1)");
}

}  // namespace stretto::arguments
