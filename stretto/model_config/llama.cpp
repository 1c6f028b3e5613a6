#include "stretto/model_config/llama.h"

#include <algorithm>
#include <array>

#include "stretto/base/error.h"
#include "stretto/model_config/activations.h"
#include "stretto/model_config/config_fields.h"
#include "stretto/model_config/heads.h"
#include "stretto/model_config/known_keys.h"
#include "stretto/model_config/outline.h"

namespace stretto {
namespace {

using Window = LlamaVariant::Window;

constexpr std::array<LlamaVariant, 4> variants_of_llama = {{
    {.model_type = "llama", .class_name = "Llama", .reads_mlp_bias = true},
    {.model_type = "mistral",
     .class_name = "Mistral",
     .reads_attention_bias = false,
     .window = Window::all_layers,
     .intermediate_size = 14336,
     .max_position_embeddings = 131072,
     .num_key_value_heads = 8},
    {.model_type = "qwen2",
     .class_name = "Qwen2",
     .query_bias = true,
     .reads_attention_bias = false,
     .window = Window::some_layers,
     .vocab_size = 151936,
     .intermediate_size = 22016,
     .max_position_embeddings = 32768,
     .num_key_value_heads = 32},
    {.model_type = "qwen3",
     .class_name = "Qwen3",
     .head_norms = true,
     .window = Window::some_layers,
     .vocab_size = 151936,
     .intermediate_size = 22016,
     .max_position_embeddings = 32768,
     .num_key_value_heads = 32,
     .head_dim = 128},
}};

const std::vector<ConfigField<LlamaConfig>>& llama_fields() {
  using Config = LlamaConfig;
  static const std::vector<ConfigField<Config>> table = {
      {"vocab_size", &Config::vocab_size, 1, max_width},
      {"hidden_size", &Config::hidden_size, 1, max_width},
      {"intermediate_size", &Config::intermediate_size, 1, max_width},
      {"num_hidden_layers", &Config::num_hidden_layers, 0, max_layers},
      {"num_attention_heads", &Config::num_attention_heads, 1, max_width},
      {"hidden_act", &Config::hidden_act, activation_names},
      {"max_position_embeddings", &Config::max_position_embeddings, 1, max_width},
      {"initializer_range", &Config::initializer_range, 100},
      {"rms_norm_eps", &Config::rms_norm_eps},
      {"attention_dropout", &Config::attention_dropout},
      {"tie_word_embeddings", &Config::tie_word_embeddings}};
  return table;
}

// Fields whose defaults depend on others, and for which null is a separate value.
const ConfigField<LlamaConfig> key_heads_field = {"num_key_value_heads", &LlamaConfig::num_key_value_heads, 1,
                                                  max_width};
const ConfigField<LlamaConfig> head_dim_field = {"head_dim", &LlamaConfig::head_dim, 1, max_width};
const ConfigField<LlamaConfig> attention_bias_field = {"attention_bias", &LlamaConfig::attention_bias};
const ConfigField<LlamaConfig> mlp_bias_field = {"mlp_bias", &LlamaConfig::mlp_bias};

// The keys that from_json reads. pretraining_tp is known too: it splits matmuls, which only changes rounding.
KnownKeys known_keys(const LlamaVariant& variant) {
  KnownKeys known = {
      .all = keys_of(llama_fields(), {"attention_bias", "mlp_bias", "rope_theta"}),
      .nullable = {"num_key_value_heads", "pretraining_tp", "sliding_window", "rope_scaling",
                   "rope_parameters", "partial_rotary_factor", "original_max_position_embeddings"}};
  if (variant.window == Window::some_layers) {
    known.all.insert(known.all.end(), {"use_sliding_window", "max_window_layers"});
    known.nullable.emplace_back("layer_types");
  }
  (variant.head_dim > 0 ? known.all : known.nullable).emplace_back("head_dim");
  known.all.insert(known.all.end(), known.nullable.begin(), known.nullable.end());
  known.nullable.emplace_back("attention_dropout");
  return known;
}

bool is_null(const nlohmann::json& json, const char* key) {
  return json.contains(key) && json.at(key).is_null();
}

void read_heads(const nlohmann::json& json, const ConfigJson& field, const std::string& source,
                LlamaConfig& config) {
  const LlamaVariant& variant = config.variant();
  const bool by_default = variant.num_key_value_heads > 0 && !is_null(json, "num_key_value_heads");
  config.num_key_value_heads = by_default ? variant.num_key_value_heads : config.num_attention_heads;
  key_heads_field.read(field, config);
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    throw ConfigError("{}: num_attention_heads ({}) must be a multiple of num_key_value_heads ({})", source,
                      config.num_attention_heads, config.num_key_value_heads);
  }
  const bool divides = config.hidden_size % config.num_attention_heads == 0;
  config.head_dim = divides ? config.hidden_size / config.num_attention_heads : 0;
  if (variant.head_dim > 0) config.head_dim = variant.head_dim;
  head_dim_field.read(field, config);
  if (config.head_dim == 0) {
    throw ConfigError("{}: hidden_size ({}) must be a multiple of num_attention_heads ({}) without head_dim",
                      source, config.hidden_size, config.num_attention_heads);
  }
}

// [layers]: the window of each.
std::vector<int64_t> read_windows(const nlohmann::json& json, const ConfigJson& field,
                                  const std::string& source, const LlamaConfig& config) {
  std::vector<int64_t> windows(static_cast<size_t>(config.num_hidden_layers));
  const Window where = config.variant().window;
  int64_t window = is_null(json, "sliding_window") ? 0 : 4096;
  field.read("sliding_window", window, 1, max_width);
  if (where == Window::none) return windows;
  if (where == Window::all_layers) {
    std::ranges::fill(windows, window);
    return windows;
  }
  bool used = false;
  field.read("use_sliding_window", used);
  if (!used) window = 0;
  int64_t first = 28;
  field.read("max_window_layers", first, 0, max_width);
  if (!json.contains("layer_types") || is_null(json, "layer_types")) {
    for (int64_t i = first; i < config.num_hidden_layers; ++i) windows[static_cast<size_t>(i)] = window;
    return windows;
  }
  const nlohmann::json& types = json.at("layer_types");
  if (!types.is_array() || std::ssize(types) != config.num_hidden_layers) {
    throw ConfigError("{}: layer_types: expected {} types, one per layer (num_hidden_layers)", source,
                      config.num_hidden_layers);
  }
  for (size_t i = 0; i < windows.size(); ++i) {
    if (types[i] == "full_attention") continue;
    if (types[i] != "sliding_attention" || window == 0) {
      throw ConfigError(
          "{}: layer_types: {} is not supported; only \"full_attention\" and, with use_sliding_window and sliding_window, \"sliding_attention\" are",
          source, types[i].dump());
    }
    windows[i] = window;
  }
  return windows;
}

// Writes the windows as from_json reads them.
void write_windows(const LlamaConfig& config, nlohmann::json& json) {
  const Window where = config.variant().window;
  if (where == Window::none) return;
  const int64_t window = config.windows.empty() ? 0 : std::ranges::max(config.windows);
  json["sliding_window"] = window > 0 ? nlohmann::json(window) : nlohmann::json();
  if (where == Window::all_layers) return;
  json["use_sliding_window"] = window > 0;
  json["layer_types"] = nlohmann::json::array();
  for (const int64_t of_layer : config.windows)
    json["layer_types"].push_back(of_layer > 0 ? "sliding_attention" : "full_attention");
}

void read_padding(const ConfigJson& field, LlamaConfig& config) {
  constexpr int64_t none = -2;
  int64_t id = none;
  field.read("pad_token_id", id, -1, config.vocab_size - 1);
  if (id != none) config.pad_token_id = id;
}

void check_sizes(const LlamaConfig& config, const std::string& source) {
  const int64_t width = config.hidden_size, rows = config.num_attention_heads * config.head_dim;
  check_parameter_count({{2, config.vocab_size, width}}, source,
                        fmt::format("vocab_size {} x hidden_size {}", config.vocab_size, width));
  check_parameter_count({{4, config.num_hidden_layers, width, rows},
                         {3, config.num_hidden_layers, width, config.intermediate_size}},
                        source,
                        fmt::format("num_hidden_layers {} x hidden_size {} x intermediate_size {}",
                                    config.num_hidden_layers, width, config.intermediate_size));
}

}  // namespace

std::span<const LlamaVariant> llama_variants() { return variants_of_llama; }

const LlamaVariant& LlamaConfig::variant() const {
  const auto found = std::ranges::find(variants_of_llama, model_type, &LlamaVariant::model_type);
  if (found != variants_of_llama.end()) return *found;
  throw ConfigError("model_type \"{}\" is not a variant of Llama", model_type);
}

int64_t LlamaConfig::padding_row() const {
  if (!pad_token_id) return -1;
  return *pad_token_id < 0 ? vocab_size - 1 : *pad_token_id;
}

LlamaConfig LlamaConfig::from_json(const nlohmann::json& json, const std::string& source) {
  const ConfigJson field(json, source);
  LlamaConfig config;
  field.read("model_type", config.model_type);
  if (std::ranges::find(variants_of_llama, config.model_type, &LlamaVariant::model_type) ==
      variants_of_llama.end())
    field.require("model_type", "llama");
  const LlamaVariant& variant = config.variant();
  field.require("quantization_config", nullptr);
  if (!variant.reads_attention_bias) field.require("attention_bias", false);
  if (!variant.reads_mlp_bias) field.require("mlp_bias", false);
  check_keys(json, source, config.model_type, known_keys(variant));
  config.vocab_size = variant.vocab_size;
  config.intermediate_size = variant.intermediate_size;
  config.max_position_embeddings = variant.max_position_embeddings;
  read_fields(llama_fields(), field, config);
  read_heads(json, field, source, config);
  check_sizes(config, source);
  if (variant.reads_attention_bias) attention_bias_field.read(field, config);
  if (variant.reads_mlp_bias) mlp_bias_field.read(field, config);
  read_padding(field, config);
  config.windows = read_windows(json, field, source, config);
  config.rope = RopeParameters::from_json(json, source, config.max_position_embeddings, config.head_dim);
  return config;
}

nlohmann::json LlamaConfig::to_json(const nlohmann::json& original) const {
  nlohmann::json json = begin_config_json(
      original, model_type, heads::architecture(variant().class_name, heads::causal_language_model));
  write_fields(llama_fields(), *this, json);
  key_heads_field.write(*this, json);
  head_dim_field.write(*this, json);
  if (variant().reads_attention_bias) attention_bias_field.write(*this, json);
  if (variant().reads_mlp_bias) mlp_bias_field.write(*this, json);
  if (pad_token_id) json["pad_token_id"] = *pad_token_id;
  write_windows(*this, json);
  rope.write(json);
  return json;
}

std::optional<ModelOutline> LlamaConfig::outline(std::string_view head) const {
  if (head != heads::causal_language_model) return std::nullopt;
  ModelOutline outline;
  outline.heads = num_attention_heads;
  outline.key_heads = num_key_value_heads;
  const auto map = [&](const std::string& name, int64_t in, int64_t out, bool bias) {
    outline.add(name + ".weight", {out, in}, in * out);
    if (bias) outline.add(name + ".bias", {out});
  };
  const auto norm = [&](const std::string& name, int64_t width) { outline.add(name + ".weight", {width}); };
  const int64_t width = hidden_size, rows = num_attention_heads * head_dim,
                key_rows = num_key_value_heads * head_dim, of_head = vocab_size * width;
  outline.table("model.embed_tokens", vocab_size, width, tie_word_embeddings ? of_head : 0);
  for (int64_t i = 0; i < num_hidden_layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}", i);
    outline.begin_block(layer);
    norm(layer + ".input_layernorm", width);
    map(layer + ".self_attn.q_proj", width, rows, query_bias());
    map(layer + ".self_attn.k_proj", width, key_rows, query_bias());
    map(layer + ".self_attn.v_proj", width, key_rows, query_bias());
    map(layer + ".self_attn.o_proj", rows, width, attention_bias);
    if (variant().head_norms) {
      norm(layer + ".self_attn.q_norm", head_dim);
      norm(layer + ".self_attn.k_norm", head_dim);
    }
    norm(layer + ".post_attention_layernorm", width);
    map(layer + ".mlp.gate_proj", width, intermediate_size, mlp_bias);
    map(layer + ".mlp.up_proj", width, intermediate_size, mlp_bias);
    map(layer + ".mlp.down_proj", intermediate_size, width, mlp_bias);
  }
  outline.begin_block("");
  norm("model.norm", width);
  if (!tie_word_embeddings) outline.add("lm_head.weight", {vocab_size, width}, of_head);
  return outline;
}

}  // namespace stretto
