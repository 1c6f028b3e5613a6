#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate_json.h"

#include "stretto/base/json.h"
#include "stretto/model_config/bert.h"
#include "stretto/model_config/config_json.h"

// Input: a model folder's config.json.
namespace stretto::fuzz {

std::vector<std::string> seeds() {
  return {
      R"({"architectures": ["BertForSequenceClassification"], "model_type": "bert", "vocab_size": 60, "hidden_size": 8,
"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 32,
"type_vocab_size": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
"initializer_range": 0.02, "layer_norm_eps": 1e-12, "pad_token_id": 0, "classifier_dropout": null,
"id2label": {"0": "neg", "1": "pos"}, "label2id": {"neg": 0, "pos": 1}, "position_embedding_type": "absolute"})",
      R"({"model_type": "bert", "num_labels": 3})"};
}

std::string mutate_fields(const std::string& input, std::mt19937_64& random) {
  return mutate_json(input, random);
}

void run(const std::string& input) {
  nlohmann::json json = parse_json(input, "config.json");
  // Each label takes time with sanitizers; more than 10^6 are refused.
  constexpr int64_t enough_labels = 1'000;
  if (json.is_object() && json.contains("num_labels")) {
    const std::optional<int64_t> count = whole_number(json["num_labels"]);
    if (count && *count > enough_labels && *count <= max_labels) json["num_labels"] = enough_labels;
  }
  const BertConfig config = BertConfig::from_json(json, "config.json");
  const nlohmann::json written = config.to_json(json, "BertForSequenceClassification");
  const BertConfig again = BertConfig::from_json(written, "written.json");
  require(again.to_json(json, "BertForSequenceClassification") == written,
          "a configuration that is written is read to an equal one");
}

}  // namespace stretto::fuzz
