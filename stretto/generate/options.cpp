#include "stretto/generate/options.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"

namespace stretto {
namespace {

constexpr int64_t default_new_tokens = 256;

void require(bool is_right, const OptionNames& names, const char* option, double found,
             const std::string& expected) {
  if (!is_right) throw ConfigError("{}: found {}; expected {}", names(option), found, expected);
}

}  // namespace

int64_t max_new_tokens(const GenerationOptions& options, int64_t prompt_tokens, int64_t max_positions) {
  int64_t most = default_new_tokens;
  if (options.max_length) most = *options.max_length - prompt_tokens;
  if (options.max_new_tokens) most = *options.max_new_tokens;
  return std::min(most, max_positions - prompt_tokens);
}

void check(const GenerationOptions& options, int64_t vocab_size, const OptionNames& names) {
  const auto at_least = [&](const char* option, int64_t value, int64_t least) {
    require(value >= least, names, option, static_cast<double>(value), fmt::format("at least {}", least));
  };
  at_least("max_new_tokens", options.max_new_tokens.value_or(1), 1);
  at_least("max_length", options.max_length.value_or(1), 1);
  at_least("min_new_tokens", options.min_new_tokens, 0);
  at_least("min_length", options.min_length, 0);
  at_least("num_beams", options.num_beams, 1);
  at_least("top_k", options.top_k, 0);
  at_least("no_repeat_ngram_size", options.no_repeat_ngram_size, 0);
  at_least("num_return_sequences", options.num_return_sequences, 1);
  const auto above_zero = [](double value) { return value > 0 && std::isfinite(value); };
  require(above_zero(options.temperature), names, "temperature", options.temperature,
          "a number above 0; without " + names("do_sample") + " the most probable tokens are chosen");
  require(options.top_p > 0 && options.top_p <= 1, names, "top_p", options.top_p,
          "a probability above 0, at most 1");
  require(options.min_p >= 0 && options.min_p <= 1, names, "min_p", options.min_p,
          "a share from 0 to 1 of the largest probability");
  require(options.typical_p > 0 && options.typical_p <= 1, names, "typical_p", options.typical_p,
          "a probability above 0, at most 1");
  const auto is_cutoff = [](double value) { return value >= 0 && value < 1; };
  require(is_cutoff(options.epsilon_cutoff), names, "epsilon_cutoff", options.epsilon_cutoff,
          "a probability below 1; 0 excludes no token");
  require(is_cutoff(options.eta_cutoff), names, "eta_cutoff", options.eta_cutoff,
          "a number from 0 to below 1; 0 excludes no token");
  require(above_zero(options.repetition_penalty), names, "repetition_penalty", options.repetition_penalty,
          "a number above 0; 1 penalises nothing");
  require(std::isfinite(options.length_penalty), names, "length_penalty", options.length_penalty,
          "a finite number");
  if (options.max_new_tokens && options.min_new_tokens > *options.max_new_tokens) {
    throw ConfigError("{} {} exceeds {} {}", names("min_new_tokens"), options.min_new_tokens,
                      names("max_new_tokens"), *options.max_new_tokens);
  }
  for (const std::string& stop : options.stop_strings) {
    if (stop.empty()) throw ConfigError("{}: a string is empty; expected text", names("stop_strings"));
  }
  if (options.num_beams > vocab_size) {
    throw ConfigError("{}: found {}; expected at most {}, the size of the model's vocabulary",
                      names("num_beams"), options.num_beams, vocab_size);
  }
  const bool draws_each = options.do_sample && options.num_beams == 1;
  if (!draws_each && options.num_return_sequences > options.num_beams) {
    throw ConfigError("{} {}: expected at most {}, which is {}, or {} without beams",
                      names("num_return_sequences"), options.num_return_sequences, names("num_beams"),
                      options.num_beams, names("do_sample"));
  }
  const auto require_ids = [&](const char* option, const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) {
      if (id < 0 || id >= vocab_size)
        throw ConfigError("{}: found {}; expected ids below {}, the size of the model's vocabulary",
                          names(option), id, vocab_size);
    }
  };
  require_ids("eos_token_id", options.eos_token_id);
  require_ids("suppress_tokens", options.suppress_tokens);
  require_ids("begin_suppress_tokens", options.begin_suppress_tokens);
  for (const auto& word : options.bad_words_ids) {
    if (word.empty()) throw ConfigError("{}: a list is empty; expected ids", names("bad_words_ids"));
    require_ids("bad_words_ids", word);
  }
}

}  // namespace stretto
