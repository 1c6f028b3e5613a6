#include "stretto/model_config/config_json.h"

#include <algorithm>
#include <map>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/registry.h"
#include "stretto/base/strings.h"
#include "stretto/model_config/heads.h"

namespace stretto {
namespace {

// The value for messages, as ASCII and truncated.
std::string shown(const nlohmann::json& value) {
  constexpr size_t longest = 60;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return text;
}

bool fits(const nlohmann::json& value, int64_t least, int64_t most) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    return number <= static_cast<uint64_t>(most) && static_cast<int64_t>(number) >= least;
  }
  return value.is_number_integer() && value.get<int64_t>() >= least && value.get<int64_t>() <= most;
}

}  // namespace

nlohmann::json read_config_json(const std::filesystem::path& file) {
  constexpr uintmax_t most = 16 << 20;
  std::error_code ignored;
  const uintmax_t size = std::filesystem::file_size(file, ignored);
  if (!ignored && size > most) {
    throw ConfigError("{}: the file has {}; expected at most {}", file.string(),
                      human_bytes(static_cast<double>(size)), human_bytes(static_cast<double>(most)));
  }
  return read_json(file);
}

ConfigJson::ConfigJson(const nlohmann::json& json, const std::string& source) : json_(json), source_(source) {
  if (!json.is_object()) throw ConfigError("{}: expected a JSON object, found {}", source, json.type_name());
}

const nlohmann::json* ConfigJson::find(const char* key) const {
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

void ConfigJson::read(const char* key, int64_t& value, int64_t least, int64_t most) const {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return;
  if (!fits(*found, least, most)) {
    throw ConfigError("{}: {}: found {}; expected an integer from {} to {}", source_, key, shown(*found),
                      least, most);
  }
  value = found->get<int64_t>();
}

void ConfigJson::read(const char* key, double& value, double least, double below) const {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return;
  if (!found->is_number() || !(found->get<double>() >= least) || !(found->get<double>() < below)) {
    throw ConfigError("{}: {}: found {}; expected a number >= {} and < {}", source_, key, shown(*found),
                      least, below);
  }
  value = found->get<double>();
}

void ConfigJson::read(const char* key, std::string& value) const {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return;
  if (!found->is_string())
    throw ConfigError("{}: {}: found {}; expected a string", source_, key, shown(*found));
  value = found->get<std::string>();
}

void ConfigJson::read(const char* key, std::string& value, std::span<const std::string_view> names) const {
  std::string name = value;
  read(key, name);
  const std::vector<std::string> known(names.begin(), names.end());
  if (find(key) != nullptr && std::ranges::find(known, name) == known.end())
    refuse_unknown_name(fmt::format("{}: {}", source_, key), name, "a value", known);
  value = std::move(name);
}

void ConfigJson::read(const char* key, bool& value) const {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return;
  if (!found->is_boolean())
    throw ConfigError("{}: {}: found {}; expected true or false", source_, key, shown(*found));
  value = found->get<bool>();
}

void ConfigJson::require(const char* key, const nlohmann::json& wanted) const {
  const nlohmann::json* found = find(key);
  if (found == nullptr || *found == wanted) return;
  throw ConfigError("{}: {}: {} is not supported; only {} is", source_, key, shown(*found), wanted.dump());
}

void check_parameter_count(const std::vector<std::vector<int64_t>>& shapes, const std::string& source,
                           const std::string& what) {
  int64_t total = 0;
  for (const auto& shape : shapes) {
    int64_t elements = 1;
    bool overflows = false;
    for (const int64_t extent : shape) overflows |= __builtin_mul_overflow(elements, extent, &elements);
    overflows |= __builtin_add_overflow(total, elements, &total);
    if (!overflows && total <= max_parameters) continue;
    throw ConfigError("{}: {} gives a model of more than 2^40 parameters; such a model is not supported",
                      source, what);
  }
}

std::vector<std::string> read_labels(const nlohmann::json& json, const std::string& source,
                                     int64_t default_count) {
  std::vector<std::string> labels;
  if (json.contains("id2label") && json["id2label"].is_object()) {
    std::map<int64_t, std::string> by_id;
    for (const auto& [id, name] : json["id2label"].items()) {
      const auto number = parse_int(id);
      if (!number || !name.is_string()) throw ConfigError("{}: id2label must map numbers to names", source);
      by_id[*number] = name.get<std::string>();
    }
    if (by_id.empty() || by_id.begin()->first != 0 || by_id.rbegin()->first != std::ssize(by_id) - 1) {
      throw ConfigError("{}: id2label must number its labels 0, 1, 2, ... without gaps", source);
    }
    for (const auto& [id, name] : by_id) labels.push_back(name);
    return labels;
  }
  int64_t count = default_count;
  ConfigJson(json, source).read("num_labels", count, 1, max_labels);
  for (int64_t id = 0; id < count; ++id) labels.push_back("LABEL_" + std::to_string(id));
  return labels;
}

void write_labels(nlohmann::json& json, const std::vector<std::string>& labels, bool is_text_classifier) {
  is_text_classifier ? void(json["problem_type"] = "single_label_classification")
                     : void(json.erase("problem_type"));
  json["id2label"] = nlohmann::json::object();
  json["label2id"] = nlohmann::json::object();
  for (size_t id = 0; id < labels.size(); ++id) {
    json["id2label"][std::to_string(id)] = labels[id];
    json["label2id"][labels[id]] = id;
  }
}

std::optional<bool> read_text_pairs(const nlohmann::json& json) {
  static const nlohmann::json::json_pointer place("/task_specific_params/text-classification/text_pair");
  if (!json.contains(place) || !json.at(place).is_boolean()) return std::nullopt;
  return json.at(place).get<bool>();
}

void write_text_pairs(nlohmann::json& json, bool pairs) {
  nlohmann::json& params = json["task_specific_params"];
  if (!params.is_object()) params = nlohmann::json::object();
  nlohmann::json& task = params["text-classification"];
  if (!task.is_object()) task = nlohmann::json::object();
  task["text_pair"] = pairs;
}

nlohmann::json begin_config_json(const nlohmann::json& original, const std::string& model_type,
                                 const std::string& architecture) {
  nlohmann::json json = original.is_object() ? original : nlohmann::json::object();
  for (const char* stale : {"_name_or_path", "num_labels", "torch_dtype", "dtype"}) json.erase(stale);
  json["model_type"] = model_type;
  json["architectures"] = {architecture};
  return json;
}

std::string architecture_of(const nlohmann::json& json) {
  const auto found = json.find("architectures");
  if (found == json.end() || !found->is_array() || found->empty() || !found->front().is_string()) return "";
  return found->front().get<std::string>();
}

std::string head_of(const std::string& architecture) {
  if (architecture.ends_with("LMHeadModel")) return heads::causal_language_model;
  const size_t head = architecture.rfind("For");
  return head == std::string::npos ? "" : architecture.substr(head + 3);
}

bool names_another_head(const nlohmann::json& json, const std::string& head) {
  const std::string architecture = architecture_of(json);
  return architecture.find("For") != std::string::npos && !architecture.ends_with("For" + head);
}

}  // namespace stretto
