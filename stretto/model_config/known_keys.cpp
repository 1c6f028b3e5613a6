#include "stretto/model_config/known_keys.h"

#include <algorithm>
#include <array>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

constexpr std::array keys_without_effect = {
    // the file, its tokenizer and the programs that wrote it
    "model_type", "architectures", "transformers_version", "torch_dtype", "dtype", "name_or_path",
    "attn_implementation", "tokenizer_class", "model_max_length", "max_sequence_length", "prefix",
    "transformers.js_config", "unsloth_version", "unsloth_fixed", "is_llama_config", "quantization_config",
    // other heads
    "id2label", "label2id", "num_labels", "problem_type", "finetuning_task", "task_specific_params",
    // what transformers returns, and how it computes
    "use_cache", "return_dict", "output_attentions", "output_past", "output_hidden_states", "torchscript",
    "use_bfloat16", "tf_legacy_loss", "chunk_size_feed_forward", "gradient_checkpointing", "is_decoder",
    "is_encoder_decoder", "tie_encoder_decoder", "cross_attention_hidden_size",
    // tokens and generation
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "unk_token_id", "decoder_start_token_id",
    "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
    "diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty",
    "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences",
    "output_scores", "return_dict_in_generate", "forced_bos_token_id", "forced_eos_token_id",
    "remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens"};

bool is_empty(const nlohmann::json& value) {
  return value.is_null() || (value.is_structured() && value.empty());
}

bool contains(const std::vector<std::string>& keys, const std::string& key) {
  return std::ranges::find(keys, key) != keys.end();
}

}  // namespace

void check_keys(const nlohmann::json& json, const std::string& source, const std::string& model_type,
                KnownKeys known) {
  for (const std::string& key : known.all) {
    if (!json.contains(key) || !json.at(key).is_null() || contains(known.nullable, key)) continue;
    throw ConfigError("{}: {}: the value is null; give one, or remove the key for transformers' default",
                      source, key);
  }
  known.all.insert(known.all.end(), keys_without_effect.begin(), keys_without_effect.end());
  for (const auto& [key, value] : json.items()) {
    if (key.starts_with('_') || is_empty(value) || contains(known.all, key)) continue;
    const std::string hint = did_you_mean(key, known.all);
    if (value == false && hint.empty()) continue;
    throw ConfigError(
        "{}: {}: a model of type {} has no such key, and it may change what the model computes; remove it if it does not{}",
        source, key, model_type, hint);
  }
}

}  // namespace stretto
