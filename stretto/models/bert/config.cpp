#include "stretto/models/bert/config.h"

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

class JsonFields {
 public:
  JsonFields(const nlohmann::json& json, const std::string& source) : json_(json), source_(source) {}

  void operator()(const char* key, int64_t& value, int64_t least) const {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_number_integer() || found->get<int64_t>() < least ||
        found->get<int64_t>() > (int64_t{1} << 40)) {
      throw ConfigError("{}: {} must be an integer of at least {}, found {}", source_, key, least,
                        found->dump());
    }
    value = found->get<int64_t>();
  }

  void operator()(const char* key, double& value, double least, double below) const {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_number() || found->get<double>() < least || found->get<double>() >= below) {
      throw ConfigError("{}: {} must be a number from {} to below {}, found {}", source_, key, least, below,
                        found->dump());
    }
    value = found->get<double>();
  }

  void operator()(const char* key, std::string& value) const {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_string())
      throw ConfigError("{}: {} must be a text, found {}", source_, key, found->dump());
    value = found->get<std::string>();
  }

  // Refuses a variant of the model: `key`, when present, must be `wanted`.
  void require(const char* key, const nlohmann::json& wanted) const {
    const nlohmann::json* found = find(key);
    if (found != nullptr && *found != wanted) {
      throw ConfigError("{}: {}: {} is not supported by this BERT; only {} is", source_, key, found->dump(),
                        wanted.dump());
    }
  }

 private:
  const nlohmann::json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  const nlohmann::json& json_;
  const std::string& source_;
};

std::map<int64_t, std::string> read_labels(const nlohmann::json& json, const std::string& source) {
  std::map<int64_t, std::string> labels;
  if (json.contains("id2label") && json["id2label"].is_object()) {
    for (const auto& [id, name] : json["id2label"].items()) {
      const auto number = parse_int(id);
      if (!number || !name.is_string()) throw ConfigError("{}: id2label must map numbers to names", source);
      labels[*number] = name.get<std::string>();
    }
    if (labels.empty() || labels.begin()->first != 0 || labels.rbegin()->first != std::ssize(labels) - 1) {
      throw ConfigError("{}: id2label must number its labels 0, 1, 2, ... without gaps", source);
    }
    return labels;
  }
  int64_t count = 2;
  JsonFields(json, source)("num_labels", count, 1);
  for (int64_t id = 0; id < count; ++id) labels[id] = "LABEL_" + std::to_string(id);
  return labels;
}

}  // namespace

void BertConfig::set_dropout(double p) {
  hidden_dropout_prob = attention_probs_dropout_prob = classifier_dropout = p;
}

void BertConfig::set_labels(const std::vector<std::string>& names) {
  id2label.clear();
  for (const std::string& name : names) id2label.emplace(std::ssize(id2label), name);
}

BertConfig BertConfig::from_json(const nlohmann::json& json, const std::string& source) {
  if (!json.is_object()) throw ConfigError("{}: a JSON object is needed", source);
  const JsonFields field(json, source);
  field.require("model_type", "bert");
  field.require("position_embedding_type", "absolute");
  field.require("is_decoder", false);
  field.require("add_cross_attention", false);
  BertConfig config;
  field("vocab_size", config.vocab_size, 1);
  field("hidden_size", config.hidden_size, 1);
  field("num_hidden_layers", config.num_hidden_layers, 0);
  field("num_attention_heads", config.num_attention_heads, 1);
  field("intermediate_size", config.intermediate_size, 1);
  field("max_position_embeddings", config.max_position_embeddings, 1);
  field("type_vocab_size", config.type_vocab_size, 1);
  field("pad_token_id", config.pad_token_id, 0);
  field("hidden_act", config.hidden_act);
  field("layer_norm_eps", config.layer_norm_eps, 0, 1);
  field("initializer_range", config.initializer_range, 0, 100);
  field("hidden_dropout_prob", config.hidden_dropout_prob, 0, 1);
  field("attention_probs_dropout_prob", config.attention_probs_dropout_prob, 0, 1);
  config.classifier_dropout = config.hidden_dropout_prob;
  field("classifier_dropout", config.classifier_dropout, 0, 1);
  if (config.hidden_size % config.num_attention_heads != 0) {
    throw ConfigError("{}: hidden_size ({}) must be a multiple of num_attention_heads ({})", source,
                      config.hidden_size, config.num_attention_heads);
  }
  config.id2label = read_labels(json, source);
  return config;
}

BertConfig BertConfig::read(const std::filesystem::path& config_json) {
  return from_json(read_json(config_json), config_json.string());
}

nlohmann::json BertConfig::to_json(const nlohmann::json& original, const std::string& architecture) const {
  nlohmann::json json = original.is_object() ? original : nlohmann::json::object();
  for (const char* stale : {"_name_or_path", "num_labels", "torch_dtype", "dtype"}) json.erase(stale);
  json["architectures"] = {architecture};
  json["model_type"] = "bert";
  json["vocab_size"] = vocab_size;
  json["hidden_size"] = hidden_size;
  json["num_hidden_layers"] = num_hidden_layers;
  json["num_attention_heads"] = num_attention_heads;
  json["intermediate_size"] = intermediate_size;
  json["max_position_embeddings"] = max_position_embeddings;
  json["type_vocab_size"] = type_vocab_size;
  json["pad_token_id"] = pad_token_id;
  json["hidden_act"] = hidden_act;
  json["layer_norm_eps"] = layer_norm_eps;
  json["initializer_range"] = initializer_range;
  json["hidden_dropout_prob"] = hidden_dropout_prob;
  json["attention_probs_dropout_prob"] = attention_probs_dropout_prob;
  json["classifier_dropout"] = classifier_dropout;
  json["problem_type"] = "single_label_classification";
  json["id2label"] = nlohmann::json::object();
  json["label2id"] = nlohmann::json::object();
  for (const auto& [id, label] : id2label) {
    json["id2label"][std::to_string(id)] = label;
    json["label2id"][label] = id;
  }
  return json;
}

}  // namespace stretto
