#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto {

// Reads a model's config.json, of at most 16 MiB. Throws ConfigError, DataError or IoError with the file's
// name.
nlohmann::json read_config_json(const std::filesystem::path& file);

// Reads a model's fields from a Hugging Face config.json. If a key is absent or null, the value is not
// changed. Each function throws ConfigError with the file, the key, what was found and what was expected.
class ConfigJson {
 public:
  // `source`: the file, for messages. Both must outlive this object. Throws ConfigError if `json` is not an
  // object.
  ConfigJson(const nlohmann::json& json, const std::string& source);

  // An integer from `least` to `most`.
  void read(const char* key, int64_t& value, int64_t least, int64_t most) const;
  // A number from `least` to below `below`.
  void read(const char* key, double& value, double least, double below) const;
  void read(const char* key, std::string& value) const;
  // One of `names`; the error suggests the closest one.
  void read(const char* key, std::string& value, std::span<const std::string_view> names) const;
  void read(const char* key, bool& value) const;

  // Throws ConfigError if `key` is present and is not `wanted`: an unsupported variant of the model.
  void require(const char* key, const nlohmann::json& wanted) const;

 private:
  const nlohmann::json* find(const char* key) const;

  const nlohmann::json& json_;
  const std::string& source_;
};

// Limits for sizes in a config.json, far above those of any model; checked before memory is allocated.
constexpr int64_t max_width = int64_t{1} << 24;  // rows and columns of weights
constexpr int64_t max_layers = 10'000;
constexpr int64_t max_labels = 1'000'000;
constexpr int64_t max_parameters = int64_t{1} << 40;  // of a model: 4 TiB in fp32

// Throws ConfigError if tensors of these shapes have more than max_parameters elements in total. `what`: the
// sizes, for the message ("vocab_size 30522 x hidden_size 768").
void check_parameter_count(const std::vector<std::vector<int64_t>>& shapes, const std::string& source,
                           const std::string& what);

// The names of a classifier's labels in the order of their ids: id2label, else LABEL_0, LABEL_1, ... for
// num_labels. Throws ConfigError for ids that do not count from 0.
std::vector<std::string> read_labels(const nlohmann::json& json, const std::string& source,
                                     int64_t default_count = 2);

// Writes id2label and label2id, and the problem_type of a single-label classifier of texts unless
// `is_text_classifier` is false: config.json then has none.
void write_labels(nlohmann::json& json, const std::vector<std::string>& labels,
                  bool is_text_classifier = true);

// Whether a text classifier was trained on pairs of texts:
// task_specific_params.text-classification.text_pair; nullopt if absent.
std::optional<bool> read_text_pairs(const nlohmann::json& json);
void write_text_pairs(nlohmann::json& json, bool pairs);

// `original` without the keys that describe how it was saved, with `model_type` and `architecture`: the
// common part of to_json for all models.
nlohmann::json begin_config_json(const nlohmann::json& original, const std::string& model_type,
                                 const std::string& architecture);

// The first of `architectures` ("BertForSequenceClassification"); "" if there is none.
std::string architecture_of(const nlohmann::json& json);

// The head of an architecture: what follows "For"; "CausalLM" for "GPT2LMHeadModel"; "" if it has none.
std::string head_of(const std::string& architecture);

// Whether the architecture ends with "For" and a head other than `head`.
bool names_another_head(const nlohmann::json& json, const std::string& head);

}  // namespace stretto
