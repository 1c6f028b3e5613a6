#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/config/model_json.h"
#include "stretto/config/recipe_fixture.h"

// The configuration of a model as a section of the recipe.
namespace stretto {
namespace {

// A recipe of a language model whose model.config is a section.
Recipe small_model(const std::string& model, const std::string& task = "causal-lm") {
  return recipe_of("task: " + task + "\nmodel:\n" + model);
}

TEST(ModelSection, IsAConfigJson) {
  const Recipe recipe = small_model(
      "  type: llama\n  config:\n    hidden_size: 64\n    rope_theta: 1e4\n    hidden_act: gelu\n");
  const ModelJson model = read_model_json(recipe.model);
  EXPECT_EQ(model.json,
            nlohmann::json::parse(
                R"({"model_type": "llama", "hidden_size": 64, "rope_theta": 10000, "hidden_act": "gelu"})"));
  EXPECT_EQ(model.name, "model.config");
  EXPECT_NO_THROW(check_model_section(recipe));
  EXPECT_EQ(recipe_of(dump_recipe(recipe)), recipe);
  EXPECT_EQ(decode_recipe(encode_recipe(recipe)), recipe);
  EXPECT_EQ(decode_recipe(encode_recipe(recipe)).origins.label("model.config.hidden_size"),
            "r.yaml:5:18: model.config.hidden_size");
  // Ranks and parts of a run must agree on it.
  EXPECT_EQ(shared_settings(recipe).at("model.config").at("hidden_size"), 64);
  EXPECT_EQ(computing_settings(recipe).at("model.config").at("hidden_size"), 64);
  EXPECT_NO_THROW(check_model_section(small_model("  config: {model_type: gpt2, n_embd: 24, n_head: 2}\n")));
  EXPECT_NO_THROW(check_model_section(small_model("  config: {model_type: added-family, any_key: 24}\n")));
}

TEST(ModelSection, MistakesHaveThePositionOfTheirKey) {
  const auto refuses = [](const std::string& model, const auto&... named) {
    EXPECT_THAT(message_of<ConfigError>([&] { check_model_section(small_model(model)); }), has_all(named...))
        << model;
  };
  const std::string llama = "  type: llama\n  config:\n";
  refuses(llama + "    hidden_siez: 64\n", "r.yaml:5:18: model.config.hidden_siez: ", "type llama",
          "no such key", "did you mean \"hidden_size\"?");
  refuses(llama + "    hidden_size: small\n", "r.yaml:5:18: model.config.hidden_size: ", "found \"small\"",
          "from 1 to 16777216");
  refuses(llama + "    hidden_size: 64\n    num_attention_heads: 3\n",
          "r.yaml:5:18: model.config.hidden_size (64) must be a multiple", "num_attention_heads (3)",
          "head_dim");
  refuses(llama + "    num_hidden_layers: 100000\n",
          "r.yaml:5:24: model.config.num_hidden_layers: ", "found 100000", "from 0 to 10000");
  refuses(llama + "    hidden_size:\n    num_hidden_layers: 2\n",
          "r.yaml:5:5: model.config.hidden_size: ", "value is empty");
  refuses(llama + "    hidden_size: null\n", "r.yaml:5:18: model.config.hidden_size: ", "value is null",
          "transformers' default");
  EXPECT_NO_THROW(check_model_section(small_model(llama + "    head_dim: null\n")));
  refuses(llama + "    rope_scaling: {rope_type: linear}\n",
          "r.yaml:5:19: model.config.rope_scaling: factor is missing");
  refuses(llama + "    num_attention_heads: 3\n",
          "r.yaml:5:5: model.config: hidden_size (4096) must be a multiple", "num_attention_heads (3)",
          "head_dim");
  refuses("  type: llama\n  config: {model_type: gpt2}\n",
          "r.yaml:4:24: model.config.model_type: ", "found \"gpt2\"", "model.type is llama");
  refuses("  config: {hidden_size: 8}\n", "r.yaml:3:11: model.config: model_type is missing",
          "set model.type", "gpt2, llama, mistral, qwen2, qwen3");
  refuses("  config: {model_type: bert}\n",
          "r.yaml:3:24: model.config.model_type: a bert cannot be described",
          "but gpt2, llama, mistral, qwen2, qwen3 can", "path of its config.json");
  EXPECT_THAT(message_of<ConfigError>([&] {
                check_model_section(small_model(llama + "    hidden_size: 64\n", "text-classification"));
              }),
              has_all("r.yaml:3:9: model.type: a llama ", "task text-classification", "but for causal-lm"));
}

}  // namespace
}  // namespace stretto
