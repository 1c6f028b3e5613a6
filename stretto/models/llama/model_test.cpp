#include "stretto/base/message_support.h"
#include "stretto/model_config/llama.h"
#include "stretto/models/decoder_support.h"
#include "stretto/nn/initial_values.h"

namespace stretto {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

LlamaConfig parsed(const nlohmann::json& json) { return LlamaConfig::from_json(json, "config.json"); }

TEST(Llama, UnsupportedConfigurationsAreRefused) {
  const auto refusal = [](const nlohmann::json& change) { return refusal_of("llama/grouped", change); };
  EXPECT_EQ(refusal(nlohmann::json::object()), "");
  EXPECT_THAT(refusal({{"num_key_value_heads", 3}}),
              has_all("num_attention_heads (4) must be a multiple", "num_key_value_heads (3)"));
  EXPECT_THAT(refusal({{"head_dim", nullptr}, {"hidden_size", 26}}),
              has_all("hidden_size (26) must be a multiple", "num_attention_heads (4)", "head_dim"));
  EXPECT_THAT(refusal({{"hidden_act", "mish"}}),
              has_all("hidden_act: \"mish\"", "not a value", "(known: gelu, "));
  EXPECT_THAT(refusal({{"quantization_config", {{"bits", 4}}}}), HasSubstr("quantization_config"));
  EXPECT_THAT(refusal({{"pad_token_id", 40}}), HasSubstr("pad_token_id: found 40"));
  EXPECT_THAT(refusal({{"head_dim", 7}}), HasSubstr("turn 7 columns of heads of 7"));
  EXPECT_THAT(refusal({{"final_logit_softcapping", 30.0}}),
              has_all("config.json: final_logit_softcapping: ", "type llama", "no such key"));
  EXPECT_THAT(refusal({{"use_qk_norm", true}}), has_all("use_qk_norm: ", "type llama", "no such key"));
  EXPECT_THAT(refusal({{"hidden_siez", 26}}), HasSubstr("did you mean \"hidden_size\"?"));
  EXPECT_THAT(refusal({{"tie_word_embedings", false}}), HasSubstr("did you mean \"tie_word_embeddings\"?"));
  for (const nlohmann::json& harmless : {nlohmann::json{{"use_mrope", false}, {"rope_interleaved", false}},
                                         nlohmann::json{{"attn_logit_softcapping", nullptr}},
                                         nlohmann::json{{"pruned_heads", nlohmann::json::object()}},
                                         nlohmann::json{{"_attn_implementation", "sdpa"}},
                                         nlohmann::json{{"temperature", 0.7}, {"pretraining_tp", 2}}})
    EXPECT_EQ(refusal(harmless), "") << harmless;
  for (const char* key : {"hidden_size", "rope_theta", "mlp_bias"}) {
    EXPECT_THAT(refusal({{key, nullptr}}),
                has_all(fmt::format("config.json: {}: the value is null", key), "transformers' default"));
  }
  for (const char* key :
       {"num_key_value_heads", "rope_scaling", "sliding_window", "pad_token_id", "torch_dtype"})
    EXPECT_EQ(refusal({{key, nullptr}}), "") << key;
  EXPECT_THAT(refusal_of("llama/qwen3", {{"head_dim", nullptr}}), HasSubstr("head_dim: the value is null"));
  EXPECT_EQ(refusal_of("llama/qwen3", {{"layer_types", nullptr}}), "");
  EXPECT_THAT(refusal({{"intermediate_size", 1 << 24}, {"hidden_size", 1 << 24}, {"head_dim", 1 << 22}}),
              HasSubstr("more than 2^40 parameters"));
}

TEST(Llama, UnsupportedRotaryPositionsAreRefused) {
  const auto refusal = [](const nlohmann::json& rope) {
    return refusal_of("llama/plain", {{"rope_parameters", rope}});
  };
  EXPECT_THAT(refusal({{"rope_type", "proportional"}}),
              HasSubstr("config.json: rope_parameters: rope_type: \"proportional\" is not a kind"));
  EXPECT_THAT(refusal({{"rope_type", "llama"}}), HasSubstr("did you mean \"llama3\"?"));
  EXPECT_THAT(refusal({{"rope_type", "default"}, {"mrope_section", {1, 2}}}),
              HasSubstr("mrope_section is not supported"));
  EXPECT_THAT(refusal({{"full_attention", {{"rope_type", "default"}}}}),
              HasSubstr("full_attention is not supported"));
  for (const char* type : {"linear", "dynamic", "llama3"})
    EXPECT_THAT(refusal({{"rope_type", type}}), HasSubstr("factor is missing")) << type;
  EXPECT_THAT(refusal({{"rope_type", "linear"}, {"factor", 0}}), HasSubstr("factor: found 0"));
  EXPECT_THAT(refusal({{"rope_type", "longrope"}, {"short_factor", {1, 2, 3, 4}}}),
              HasSubstr("long_factor: expected 4 positive numbers"));
  EXPECT_THAT(refusal({{"rope_type", "longrope"}, {"short_factor", {1, 2}}, {"long_factor", {1, 2}}}),
              HasSubstr("short_factor: expected 4 positive numbers"));
  EXPECT_THAT(
      refusal({{"rope_type", "llama3"}, {"factor", 2}, {"low_freq_factor", 4}, {"high_freq_factor", 4}}),
      HasSubstr("high_freq_factor (4) must be greater than low_freq_factor (4)"));
  EXPECT_THAT(refusal({{"rope_type", "default"}, {"partial_rotary_factor", 1.25}}),
              HasSubstr("turn 10 columns of heads of 8"));
  EXPECT_THAT(refusal_of("llama/plain", {{"rope_scaling", {{"type", "su"}, {"factor", 2}}}}),
              HasSubstr("config.json: rope_scaling: rope_type: \"su\" is not a kind"));
}

// The keys of transformers 4, and their precedence if several of them are given.
TEST(Llama, RotaryPositionsOfOlderFilesAreRead) {
  const nlohmann::json plain = {{"model_type", "llama"}};
  const auto rope = [&](const nlohmann::json& change) {
    nlohmann::json json = plain;
    json.update(change);
    return parsed(json).rope;
  };
  EXPECT_EQ(rope({{"rope_theta", 5e5}}).theta, 5e5);
  const RopeParameters scaled =
      rope({{"rope_theta", 5e5}, {"rope_scaling", {{"type", "linear"}, {"factor", 4}}}});
  EXPECT_EQ(scaled.type, RopeType::linear);
  EXPECT_EQ(scaled.factor, 4);
  EXPECT_EQ(scaled.theta, 5e5);
  EXPECT_EQ(
      rope({{"rope_theta", 5e5}, {"rope_scaling", nullptr}, {"rope_parameters", {{"rope_theta", 7}}}}).theta,
      7);
  const nlohmann::json yarn = {
      {"rope_type", "yarn"}, {"factor", 2}, {"original_max_position_embeddings", 16}};
  EXPECT_EQ(rope({{"rope_scaling", yarn}}).original_max_position_embeddings, 16);
  EXPECT_EQ(rope({{"rope_scaling", yarn}, {"original_max_position_embeddings", 8}})
                .original_max_position_embeddings,
            8);
  EXPECT_EQ(rope({{"partial_rotary_factor", 0.5}}).width(128), 64);
}

TEST(Llama, WindowsEqualThoseOfTransformers) {
  const auto windows = [](nlohmann::json json) {
    json.update({{"num_hidden_layers", 3}, {"hidden_size", 64}});
    return parsed(json).windows;
  };
  EXPECT_THAT(windows({{"model_type", "llama"}, {"sliding_window", 5}}), ElementsAre(0, 0, 0));
  EXPECT_THAT(windows({{"model_type", "mistral"}}), ElementsAre(4096, 4096, 4096));
  EXPECT_THAT(windows({{"model_type", "mistral"}, {"sliding_window", nullptr}}), ElementsAre(0, 0, 0));
  EXPECT_THAT(windows({{"model_type", "mistral"}, {"sliding_window", 5}}), ElementsAre(5, 5, 5));
  const nlohmann::json qwen = {
      {"model_type", "qwen2"}, {"use_sliding_window", true}, {"sliding_window", 5}, {"max_window_layers", 2}};
  EXPECT_THAT(windows(qwen), ElementsAre(0, 0, 5));
  nlohmann::json other = qwen;
  other["use_sliding_window"] = false;
  EXPECT_THAT(windows(other), ElementsAre(0, 0, 0));
  other = qwen;
  other["layer_types"] = {"sliding_attention", "full_attention", "full_attention"};
  EXPECT_THAT(windows(other), ElementsAre(5, 0, 0));
  for (const nlohmann::json& change :
       {nlohmann::json{{"use_sliding_window", false}}, nlohmann::json{{"layer_types", {"a", "b", "c"}}},
        nlohmann::json{{"layer_types", {"full_attention"}}}}) {
    nlohmann::json wrong = other;
    wrong.update(change);
    EXPECT_THAT(message_of<ConfigError>([&] { windows(wrong); }), HasSubstr("layer_types: "));
  }
}

TEST(Llama, DefaultsEqualThoseOfTransformers) {
  const LlamaConfig llama = parsed({{"model_type", "llama"}, {"num_attention_heads", 16}}),
                    mistral = parsed({{"model_type", "mistral"}}), qwen2 = parsed({{"model_type", "qwen2"}}),
                    qwen3 = parsed(
                        {{"model_type", "qwen3"}, {"hidden_size", 1024}, {"num_key_value_heads", nullptr}});
  EXPECT_EQ(llama.num_key_value_heads, 16);
  EXPECT_EQ(llama.head_dim, 256);
  EXPECT_FALSE(llama.query_bias());
  EXPECT_EQ(mistral.num_key_value_heads, 8);
  EXPECT_EQ(mistral.max_position_embeddings, 131072);
  EXPECT_TRUE(qwen2.query_bias());
  EXPECT_FALSE(qwen2.attention_bias);
  EXPECT_EQ(qwen2.vocab_size, 151936);
  EXPECT_EQ(qwen3.head_dim, 128);
  EXPECT_EQ(qwen3.num_key_value_heads, 32);
}

// A key that only another variant reads has no effect, as in transformers.
TEST(Llama, KeysOfOtherVariantsAreRefused) {
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    EXPECT_THAT(refusal_of("llama/mistral", {{key, true}}),
                HasSubstr(fmt::format("{}: true is not supported; only false is", key)));
    const LlamaConfig mistral = parsed({{"model_type", "mistral"}, {key, false}});
    EXPECT_FALSE(mistral.query_bias() || mistral.attention_bias || mistral.mlp_bias);
  }
  EXPECT_THAT(refusal_of("llama/mistral", {{"use_sliding_window", true}}),
              HasSubstr("use_sliding_window: a model of type mistral has no such key"));
}

TEST(Llama, InitialValuesEqualThoseOfTransformers) {
  nlohmann::json config = config_of("llama/biases");
  config.update({{"vocab_size", 400}, {"hidden_size", 64}, {"initializer_range", 0.05}});
  const auto model = make_decoder(config);
  nn::fill_parameters(*model, *initial_values(*model, 1));
  const auto parameters = model->named_parameters();
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight",
                           "model.layers.1.self_attn.o_proj.weight", "model.layers.1.mlp.down_proj.weight"})
    EXPECT_NEAR(parameters[name].std().item<double>(), 0.05, 0.003) << name;
  EXPECT_TRUE(at::equal(parameters["model.embed_tokens.weight"][7], at::zeros({64}))) << "the padding row";
  EXPECT_TRUE(at::equal(parameters["model.layers.1.self_attn.q_proj.bias"], at::zeros({16})));
  EXPECT_TRUE(at::equal(parameters["model.layers.1.input_layernorm.weight"], at::ones({64})));
}

// Weights of norms and biases have no weight decay.
TEST(Llama, NormsHaveNoWeightDecay) {
  const auto model = make_decoder(config_of("llama/qwen3"));
  for (const auto& item : model->named_modules("", /*include_self=*/false)) {
    for (const auto& parameter : item.value()->named_parameters(/*recurse=*/false)) {
      const bool is_matrix = parameter.value().dim() == 2;
      EXPECT_EQ(nn::has_weight_decay(*item.value(), parameter.key()), is_matrix) << item.key();
    }
  }
}

}  // namespace
}  // namespace stretto
