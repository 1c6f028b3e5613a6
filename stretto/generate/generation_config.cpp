#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/log.h"
#include "stretto/generate/options.h"

namespace stretto {
namespace {

using nlohmann::json;

// Keys of transformers that do not change what is generated: they choose how it is computed or what else is
// returned, or name ids that the tokenizer or packed batches make unnecessary.
constexpr auto inert = std::to_array<std::string_view>({"_from_model_config",
                                                        "transformers_version",
                                                        "bos_token_id",
                                                        "pad_token_id",
                                                        "decoder_start_token_id",
                                                        "use_cache",
                                                        "cache_implementation",
                                                        "cache_config",
                                                        "max_cache_len",
                                                        "output_attentions",
                                                        "output_hidden_states",
                                                        "output_scores",
                                                        "output_logits",
                                                        "return_dict_in_generate",
                                                        "compile_config",
                                                        "disable_compile",
                                                        "continuous_batching_config",
                                                        "low_memory",
                                                        "prefill_chunk_size",
                                                        "is_assistant",
                                                        "num_assistant_tokens",
                                                        "num_assistant_tokens_schedule",
                                                        "assistant_confidence_threshold",
                                                        "max_matching_ngram_size",
                                                        "assistant_early_exit",
                                                        "assistant_lookbehind",
                                                        "target_lookbehind",
                                                        "assistant_ensemble_weight",
                                                        "speculation_type",
                                                        "encoder_no_repeat_ngram_size",
                                                        "encoder_repetition_penalty",
                                                        "chat_format",
                                                        "trust_remote_code"});

// Settings that change what is generated, with the values that do not change it; null never does.
const std::map<std::string, json>& unsupported() {
  static const std::map<std::string, json> keys = {{"max_time", nullptr},
                                                   {"use_mtp", false},
                                                   {"top_h", nullptr},
                                                   {"forced_bos_token_id", nullptr},
                                                   {"forced_eos_token_id", nullptr},
                                                   {"remove_invalid_values", false},
                                                   {"exponential_decay_length_penalty", nullptr},
                                                   {"sequence_bias", nullptr},
                                                   {"token_healing", false},
                                                   {"guidance_scale", 1.0},
                                                   {"watermarking_config", nullptr},
                                                   {"prompt_lookup_num_tokens", nullptr},
                                                   {"penalty_alpha", 0.0},
                                                   {"dola_layers", nullptr},
                                                   {"diversity_penalty", 0.0},
                                                   {"num_beam_groups", 1},
                                                   {"constraints", nullptr},
                                                   {"force_words_ids", nullptr}};
  return keys;
}

// Reads one value of the file.
struct Value {
  const json& value;
  std::string place;

  [[noreturn]] void refuse(const char* expected) const {
    throw ConfigError("{}: found {}; expected {}", place, value.dump(), expected);
  }
  void to(bool& target) const {
    if (!value.is_boolean()) refuse("true or false");
    target = value.get<bool>();
  }
  void to(int64_t& target) const {
    const auto number = whole_number(value);
    if (!number) refuse("a whole number");
    target = *number;
  }
  void to(std::optional<int64_t>& target) const { to(target.emplace()); }
  void to(double& target) const {
    if (!value.is_number()) refuse("a number");
    target = value.get<double>();
  }
  void to(EarlyStopping& target) const {
    if (value == "never")
      target = EarlyStopping::never;
    else if (value.is_boolean())
      target = value.get<bool>() ? EarlyStopping::yes : EarlyStopping::no;
    else
      refuse("true, false or \"never\"");
  }
  void to(std::vector<std::string>& target) const {
    target.clear();
    for (const json& one : value.is_array() ? value : json::array({value})) {
      if (!one.is_string()) refuse("text, or a list of texts");
      target.push_back(one.get<std::string>());
    }
  }
  void to(std::vector<int32_t>& target) const {
    target.clear();
    for (const json& one : value.is_array() ? value : json::array({value})) {
      const auto id = whole_number(one);
      if (!id || *id < 0 || *id > std::numeric_limits<int32_t>::max())
        refuse("the id of a token, or a list of them");
      target.push_back(static_cast<int32_t>(*id));
    }
  }
  void to(std::vector<std::vector<int32_t>>& target) const {
    if (!value.is_array()) refuse("a list of lists of token ids");
    target.clear();
    for (const json& one : value) {
      if (!one.is_array()) refuse("a list of lists of token ids");
      Value{one, place}.to(target.emplace_back());
    }
  }
};

// Returns whether `key` is an option that is supported.
bool read_option(const std::string& key, const Value& value, GenerationOptions& options) {
  const auto read = [&](const char* name, auto& target) {
    if (key != name) return false;
    value.to(target);
    return true;
  };
  return read("max_new_tokens", options.max_new_tokens) || read("max_length", options.max_length) ||
         read("min_new_tokens", options.min_new_tokens) || read("min_length", options.min_length) ||
         read("eos_token_id", options.eos_token_id) || read("stop_strings", options.stop_strings) ||
         read("num_beams", options.num_beams) || read("length_penalty", options.length_penalty) ||
         read("early_stopping", options.early_stopping) || read("do_sample", options.do_sample) ||
         read("temperature", options.temperature) || read("top_k", options.top_k) ||
         read("top_p", options.top_p) || read("min_p", options.min_p) ||
         read("typical_p", options.typical_p) || read("epsilon_cutoff", options.epsilon_cutoff) ||
         read("eta_cutoff", options.eta_cutoff) || read("repetition_penalty", options.repetition_penalty) ||
         read("no_repeat_ngram_size", options.no_repeat_ngram_size) ||
         read("suppress_tokens", options.suppress_tokens) ||
         read("begin_suppress_tokens", options.begin_suppress_tokens) ||
         read("bad_words_ids", options.bad_words_ids) ||
         read("renormalize_logits", options.renormalize_logits) ||
         read("num_return_sequences", options.num_return_sequences);
}

}  // namespace

GenerationOptions parse_generation_config(const json& file, const std::string& name) {
  if (!file.is_object()) throw ConfigError("{}: expected an object of options of generation", name);
  GenerationOptions options;
  for (const auto& [key, value] : file.items()) {
    const std::string place = name + ": " + key;
    if (value.is_null() || read_option(key, {value, place}, options)) continue;
    const auto refused = unsupported().find(key);
    if (refused != unsupported().end()) {
      if (value == refused->second) continue;
      throw ConfigError("{} {} is not supported and would change the text; remove it from the file", place,
                        value.dump());
    }
    if (std::ranges::find(inert, key) == inert.end())
      log::warning("{} is not an option of generation that stretto knows; it is ignored", place);
  }
  return options;
}

GenerationOptions read_generation_config(const std::filesystem::path& folder) {
  GenerationOptions options;
  const auto file = folder / "generation_config.json", config = folder / "config.json";
  if (std::filesystem::exists(file)) options = parse_generation_config(read_json(file), file.string());
  if (options.eos_token_id.empty()) {
    const json model = read_json(config);
    const auto eos = model.find("eos_token_id");
    if (eos != model.end() && !eos->is_null())
      Value{*eos, config.string() + ": eos_token_id"}.to(options.eos_token_id);
  }
  return options;
}

}  // namespace stretto
