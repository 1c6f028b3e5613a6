#pragma once

#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/decoder.h"
#include "stretto/models/registry.h"
#include "stretto/nn/initial_values.h"

namespace stretto {

// A family that stretto does not have: this class and the line that registers it.
class OddDecoder : public Decoder {
 public:
  explicit OddDecoder(int64_t vocab_size)
      : Decoder({.words = "words",
                 .positions = "places",
                 .layers = "blocks",
                 .norm = "end",
                 .vocab_size = vocab_size,
                 .max_length = 24,
                 .number_of_layers = 2,
                 .tied = true,
                 .layer_names = {.attention_norm = "norm_1",
                                 .query = "q",
                                 .key = "k",
                                 .value = "v",
                                 .output = "o",
                                 .mlp_norm = "norm_2",
                                 .in = "in",
                                 .factor = "factor",
                                 .out = "out"},
                 .layer = {.width = 12,
                           .inner = 20,
                           .heads = 4,
                           .key_heads = 2,
                           .head_width = 3,
                           .norm_eps = 1e-5,
                           .mlp_bias = true,
                           .activation = nn::Activation::relu},
                 .rules = {{.causal = true}, {.causal = true, .window = 4}}}) {}

  nn::InitialValue initial_value(const nn::LayerParameter& parameter) const override {
    return nn::InitRule{.std = 0.3}.of(parameter);
  }
  nlohmann::json config_json(const nlohmann::json& original) const override {
    return begin_config_json(original, "odd", "OddForCausalLM");
  }
};

// A model of it from a registry, with random weights.
inline std::shared_ptr<TextModel> make_odd_decoder() {
  ModelRegistry models = bundled_models();
  const MakeTextModel make = [](const nlohmann::json& config, const std::string& source,
                                const TextModelOptions&) {
    int64_t vocab_size = 0;
    ConfigJson(config, source).read("vocab_size", vocab_size, 1, max_width);
    return std::make_shared<OddDecoder>(vocab_size);
  };
  models.add({.name = "odd", .heads = {{heads::causal_language_model, {make}}}});
  auto model = make_text_model(models, heads::causal_language_model,
                               {{"model_type", "odd"}, {"vocab_size", 41}}, "config.json");
  nn::fill_parameters(*model, *initial_values(*model, 1));
  return model;
}

}  // namespace stretto
