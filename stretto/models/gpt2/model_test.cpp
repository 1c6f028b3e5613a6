#include "stretto/base/message_support.h"
#include "stretto/models/decoder_support.h"
#include "stretto/nn/initial_values.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;

std::string difference_of(const Decoder& a, const Decoder& b) {
  const auto others = b.named_parameters();
  for (const auto& item : a.named_parameters())
    if (!at::equal(item.value(), others[item.key()])) return item.key();
  return "";
}

TEST(Gpt2, ShardedAndOldWeightFilesAreRead) {
  const auto wanted = load_decoder("gpt2/plain");
  EXPECT_EQ(difference_of(*load_decoder("gpt2/sharded"), *wanted), "");
  EXPECT_EQ(difference_of(*load_decoder("gpt2/old_names"), *wanted), "");
}

// A head that a folder lacks is reported as missing.
TEST(Gpt2, AnUntiedHeadIsMissingFromTiedWeights) {
  nlohmann::json config = config_of("gpt2/plain");
  config["tie_word_embeddings"] = false;
  EXPECT_THAT(load_weights(*make_decoder(config), decoder_goldens / "gpt2/plain").missing,
              ::testing::ElementsAre("lm_head.weight"));
}

TEST(Gpt2, InitialValuesEqualThoseOfTransformers) {
  const nlohmann::json config = {{"model_type", "gpt2"},
                                 {"vocab_size", 300},
                                 {"n_embd", 64},
                                 {"n_layer", 8},
                                 {"n_positions", 200},
                                 {"n_head", 4},
                                 {"tie_word_embeddings", false}};
  const auto model = make_decoder(config);
  nn::fill_parameters(*model, *initial_values(*model, 1));
  const auto parameters = model->named_parameters();
  const auto deviation = [&](const char* name) { return parameters[name].std().item<double>(); };
  for (const char* name : {"transformer.wte.weight", "transformer.wpe.weight", "lm_head.weight",
                           "transformer.h.2.attn.c_attn.weight", "transformer.h.2.mlp.c_fc.weight"})
    EXPECT_NEAR(deviation(name), 0.02, 0.0006) << name;
  for (const char* name : {"transformer.h.2.attn.c_proj.weight", "transformer.h.2.mlp.c_proj.weight"})
    EXPECT_NEAR(deviation(name), 0.02 / 4, 0.0002) << name;
  EXPECT_TRUE(at::equal(parameters["transformer.h.2.ln_1.weight"], at::ones({64})));
  EXPECT_TRUE(at::equal(parameters["transformer.ln_f.weight"], at::ones({64})));
  EXPECT_TRUE(at::equal(parameters["transformer.h.2.attn.c_attn.bias"], at::zeros({192})));
}

TEST(Gpt2, ThousandsOfLayersAreCreated) {
  const auto model = make_decoder({{"model_type", "gpt2"},
                                   {"vocab_size", 7},
                                   {"n_embd", 2},
                                   {"n_layer", 3000},
                                   {"n_positions", 24},
                                   {"n_head", 1}});
  nn::fill_parameters(*model, *initial_values(*model, 1));
  Batch batch = packed_batch(golden_of("gpt2/plain"));
  batch.tensors["input_ids"] = batch.at("input_ids").remainder(7);
  EXPECT_TRUE(model->forward(batch, {}).isfinite().all().item<bool>());
}

TEST(Gpt2, UnsupportedConfigurationsAreRefused) {
  const auto refusal = [](const nlohmann::json& change) { return refusal_of("gpt2/plain", change); };
  EXPECT_EQ(refusal(nlohmann::json::object()), "");
  EXPECT_THAT(refusal({{"add_cross_attention", true}}), HasSubstr("add_cross_attention: true"));
  EXPECT_THAT(refusal({{"activation_function", "mish"}}),
              has_all("activation_function: \"mish\"", "not a value", "(known: gelu, "));
  EXPECT_THAT(refusal({{"n_head", 5}}), HasSubstr("n_embd (16) must be a multiple of n_head (5)"));
  EXPECT_THAT(refusal({{"n_inner", 0}}), HasSubstr("n_inner: found 0"));
  EXPECT_THAT(refusal({{"quantization_config", {{"bits", 4}}}}), HasSubstr("quantization_config"));
  EXPECT_THAT(refusal({{"attn_logit_softcapping", 50.0}}),
              has_all("config.json: attn_logit_softcapping: ", "type gpt2", "no such key"));
  for (const char* key : {"n_embd", "hidden_size", "tie_word_embeddings"})
    EXPECT_THAT(refusal({{key, nullptr}}), HasSubstr(fmt::format("config.json: {}: the value is null", key)));
  EXPECT_EQ(
      refusal({{"n_inner", nullptr}, {"summary_activation", nullptr}, {"task_specific_params", nullptr}}),
      "");
}

TEST(Gpt2, AliasesOfKeysAreRead) {
  const auto limits = make_decoder({{"model_type", "gpt2"},
                                    {"max_position_embeddings", 7},
                                    {"hidden_size", 8},
                                    {"num_hidden_layers", 1},
                                    {"num_attention_heads", 2}})
                          ->config_json({});
  EXPECT_EQ(limits.at("n_positions"), 7);
  EXPECT_EQ(limits.at("n_embd"), 8);
  EXPECT_EQ(limits.at("n_layer"), 1);
  EXPECT_EQ(limits.at("n_head"), 2);
}

TEST(Gpt2, TextsLongerThanItsPositionsAreRefused) {
  nlohmann::json config = config_of("gpt2/plain");
  config["n_positions"] = 23;
  EXPECT_THAT(message_of<DataError>(
                  [&] { make_decoder(config)->forward(packed_batch(golden_of("gpt2/plain")), {}); }),
              HasSubstr("a sequence of 24 tokens is longer"));
}

}  // namespace
}  // namespace stretto
