#include "stretto/tasks/preparation.h"

#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/base/log.h"
#include "stretto/trainer/products.h"

namespace stretto {

std::optional<bool> prefix_space(const Recipe& recipe) {
  if (recipe.tokenizer.add_prefix_space || recipe.task != "token-classification")
    return recipe.tokenizer.add_prefix_space;
  return true;
}

text::Tokenizer load_tokenizer(const Recipe& recipe, const std::filesystem::path& folder) {
  return text::Tokenizer::load(
      folder, {.lowercase = recipe.tokenizer.lowercase, .add_prefix_space = prefix_space(recipe)});
}

void check_fit(const Recipe& recipe, const text::Tokenizer& tokenizer, const TextModel& model) {
  if (tokenizer.vocab_size() > model.vocab_size()) {
    throw ConfigError(
        "the tokenizer has ids up to {}, but the model's vocab_size is {}; set tokenizer.path to the tokenizer of model.path",
        tokenizer.vocab_size() - 1, model.vocab_size());
  }
  if (recipe.data.max_length > model.max_length()) {
    throw ConfigError("data.max_length: {} exceeds the {} positions of the model; set data.max_length: {}",
                      recipe.data.max_length, model.max_length(), model.max_length());
  }
}

std::vector<Input> inputs_of(const text::Tokenizer& tokenizer, const TextModel& model) {
  std::vector<Input> inputs = {{"tokenizer", "contents " + hash128_hex(tokenizer.fingerprint())}};
  const nlohmann::json config = model.config_json({});
  for (const auto& [key, value] : config.items()) inputs.push_back({"model config." + key, value.dump()});
  return inputs;
}

Evaluation evaluate_for_test(const Recipe& recipe, Module& module, const data::Dataset& dataset, Group& group,
                             at::Device device) {
  load_all_parameters(module);
  return evaluate_alone(recipe, module, dataset, group, device, EvaluationStep::validation);
}

}  // namespace stretto
