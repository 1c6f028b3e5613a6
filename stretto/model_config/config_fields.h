#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "stretto/model_config/config_json.h"

namespace stretto {

// A field of a family's config.json: its key, the member that stores it (with its default), and its range. A
// family names each field once, in a table:
//   const std::vector<ConfigField<BertConfig>> fields = {
//       {"hidden_size", &BertConfig::hidden_size, 1, max_width}, ...};
template <class Config>
class ConfigField {
 public:
  using Size = int64_t Config::*;

  // An integer from `least` to `most`.
  ConfigField(const char* key, Size member, int64_t least, int64_t most)
      : key_(key), member_(member), least_(least), most_(most) {}
  // An integer from 0 to below the field `size`, which precedes it in the table.
  ConfigField(const char* key, Size member, Size size) : key_(key), member_(member), size_(size) {}
  // A number >= 0 and < `below`; by default a probability.
  ConfigField(const char* key, double Config::*member, double below = 1)
      : key_(key), member_(member), below_(below) {}
  // A text, by default any; else one of `names`, which must outlive the field.
  ConfigField(const char* key, std::string Config::*member, std::span<const std::string_view> names = {})
      : key_(key), member_(member), names_(names) {}
  ConfigField(const char* key, bool Config::*member) : key_(key), member_(member) {}

  const char* key() const { return key_; }

  // Throws ConfigError as ConfigJson::read. An absent key leaves the member as it is.
  void read(const ConfigJson& json, Config& config) const {
    std::visit([&](auto member) { read_to(json, config, config.*member); }, member_);
  }
  void write(const Config& config, nlohmann::json& json) const {
    std::visit([&](auto member) { json[key_] = config.*member; }, member_);
  }

 private:
  void read_to(const ConfigJson& json, const Config& config, int64_t& value) const {
    json.read(key_, value, least_, size_ == nullptr ? most_ : config.*size_ - 1);
  }
  void read_to(const ConfigJson& json, const Config&, double& value) const {
    json.read(key_, value, 0, below_);
  }
  void read_to(const ConfigJson& json, const Config&, std::string& value) const {
    names_.empty() ? json.read(key_, value) : json.read(key_, value, names_);
  }
  void read_to(const ConfigJson& json, const Config&, bool& value) const { json.read(key_, value); }

  const char* key_;
  std::variant<Size, double Config::*, std::string Config::*, bool Config::*> member_;
  int64_t least_ = 0, most_ = 0;
  double below_ = 1;
  Size size_ = nullptr;
  std::span<const std::string_view> names_;
};

template <class Config>
void read_fields(const std::vector<ConfigField<Config>>& fields, const ConfigJson& json, Config& config) {
  for (const auto& field : fields) field.read(json, config);
}

// The keys of `fields`, and `further`.
template <class Config>
std::vector<std::string> keys_of(const std::vector<ConfigField<Config>>& fields,
                                 std::vector<std::string> further) {
  for (const auto& field : fields) further.emplace_back(field.key());
  return further;
}

template <class Config>
void write_fields(const std::vector<ConfigField<Config>>& fields, const Config& config,
                  nlohmann::json& json) {
  for (const auto& field : fields) field.write(config, json);
}

}  // namespace stretto
