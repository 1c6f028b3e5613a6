#include "stretto/model_config/rope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/model_config/config_json.h"

namespace stretto {
namespace {

struct TypeName {
  const char* name;
  RopeType type;
};
constexpr std::array<TypeName, 6> type_names = {{{"default", RopeType::unchanged},
                                                 {"linear", RopeType::linear},
                                                 {"dynamic", RopeType::dynamic},
                                                 {"yarn", RopeType::yarn},
                                                 {"longrope", RopeType::longrope},
                                                 {"llama3", RopeType::llama3}}};

constexpr double largest = 1e9;  // of factors

// The parameters of a type are in an object of config.json, or in config.json itself, which has only some of
// them.
class RopeJson {
 public:
  RopeJson(const nlohmann::json& config, const std::string& source)
      : key_(is_given(config, "rope_scaling") ? "rope_scaling" : "rope_parameters"),
        source_(fmt::format("{}: {}", source, key_)),
        json_(is_given(config, key_) ? config.at(key_) : nlohmann::json::object()),
        fields_(json_, source_) {}

  bool has(const char* key) const { return is_given(json_, key); }

  RopeType type() const {
    std::string name = "default";
    fields_.read("type", name);  // as older files name it
    fields_.read("rope_type", name);
    std::vector<std::string> names;
    for (const TypeName& known : type_names) {
      if (name == known.name) return known.type;
      names.emplace_back(known.name);
    }
    throw ConfigError("{}: rope_type: \"{}\" is not a kind of rotary positions{} (known: {})", source_, name,
                      did_you_mean(name, names), fmt::join(names, ", "));
  }

  void refuse_unknown_keys() const {
    static const std::vector<std::string> known = {"type",
                                                   "rope_type",
                                                   "rope_theta",
                                                   "partial_rotary_factor",
                                                   "factor",
                                                   "original_max_position_embeddings",
                                                   "attention_factor",
                                                   "beta_fast",
                                                   "beta_slow",
                                                   "mscale",
                                                   "mscale_all_dim",
                                                   "truncate",
                                                   "short_factor",
                                                   "long_factor",
                                                   "low_freq_factor",
                                                   "high_freq_factor",
                                                   "finetuned"};  // which transformers ignores
    for (const auto& item : json_.items()) {
      if (std::ranges::find(known, item.key()) == known.end())
        throw ConfigError("{}: {} is not supported{}", source_, item.key(), did_you_mean(item.key(), known));
    }
  }

  // Reads a number >= 0. Returns `otherwise` if it is absent; throws if that is unset.
  double number(const char* key, std::optional<double> otherwise = {}) const {
    if (!has(key) && !otherwise) throw ConfigError("{}: {} is missing", source_, key);
    double value = otherwise.value_or(0);
    fields_.read(key, value, 0, largest);
    return value;
  }

  int64_t length(const char* key, int64_t otherwise) const {
    fields_.read(key, otherwise, 1, max_width);
    return otherwise;
  }

  bool flag(const char* key, bool otherwise) const {
    fields_.read(key, otherwise);
    return otherwise;
  }

  std::vector<double> factors(const char* key, int64_t count) const {
    const bool fits = has(key) && json_.at(key).is_array() && std::ssize(json_.at(key)) == count &&
                      std::ranges::all_of(json_.at(key), [](const nlohmann::json& each) {
                        return each.is_number() && each.get<double>() > 0;
                      });
    if (!fits) {
      throw ConfigError("{}: {}: expected {} positive numbers, half the columns of a head that are turned",
                        source_, key, count);
    }
    return json_.at(key).get<std::vector<double>>();
  }

  const std::string& source() const { return source_; }

 private:
  static bool is_given(const nlohmann::json& json, const std::string& key) {
    return json.contains(key) && !json.at(key).is_null() && json.at(key) != nlohmann::json::object();
  }

  std::string key_, source_;
  nlohmann::json json_;
  ConfigJson fields_;
};

double positive(double value, const char* key, const std::string& source) {
  if (value > 0) return value;
  throw ConfigError("{}: {}: found {}; expected a number > 0", source, key, value);
}

// YaRN's temperature (Peng et al. 2023, eq. 22).
double magnitude(double scale, double factor = 1) {
  return scale <= 1 ? 1 : 0.1 * factor * std::log(scale) + 1;
}

double yarn_attention_factor(const RopeJson& json, double factor) {
  if (json.has("attention_factor")) return json.number("attention_factor");
  const double of_scores = json.number("mscale", 0), of_all = json.number("mscale_all_dim", 0);
  return of_scores != 0 && of_all != 0 ? magnitude(factor, of_scores) / magnitude(factor, of_all)
                                       : magnitude(factor);
}

double longrope_attention_factor(const RopeJson& json, double factor, int64_t original) {
  if (json.has("attention_factor")) return json.number("attention_factor");
  return factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original)));
}

}  // namespace

int64_t RopeParameters::width(int64_t head_width) const {
  return static_cast<int64_t>(static_cast<double>(head_width) * partial_rotary_factor);
}

RopeParameters RopeParameters::from_json(const nlohmann::json& config, const std::string& source,
                                         int64_t max_position_embeddings, int64_t head_width) {
  const ConfigJson outer(config, source);
  const RopeJson json(config, source);
  json.refuse_unknown_keys();
  RopeParameters rope;
  rope.type = json.type();
  outer.read("rope_theta", rope.theta, 0, 1e30);
  rope.theta = json.has("rope_theta") ? json.number("rope_theta") : rope.theta;
  positive(rope.theta, "rope_theta", json.source());
  outer.read("partial_rotary_factor", rope.partial_rotary_factor, 0, 2);
  rope.partial_rotary_factor = json.number("partial_rotary_factor", rope.partial_rotary_factor);
  const int64_t width = rope.width(head_width);
  if (width < 2 || width % 2 != 0 || width > head_width) {
    throw ConfigError(
        "{}: rotary positions turn {} columns of heads of {} (partial_rotary_factor {}); expected an even number from 2 to {}",
        source, width, head_width, rope.partial_rotary_factor, head_width);
  }
  rope.max_position_embeddings = max_position_embeddings;
  rope.original_max_position_embeddings =
      json.length("original_max_position_embeddings", max_position_embeddings);
  outer.read("original_max_position_embeddings", rope.original_max_position_embeddings, 1, max_width);
  const double ratio = static_cast<double>(max_position_embeddings) /
                       static_cast<double>(rope.original_max_position_embeddings);
  const auto factor = [&](std::optional<double> otherwise) {
    return positive(json.number("factor", otherwise), "factor", json.source());
  };
  switch (rope.type) {
    case RopeType::unchanged:
      break;
    case RopeType::linear:
      rope.factor = factor({});
      break;
    case RopeType::dynamic:
      rope.factor = factor({});
      if (width == 2)
        throw ConfigError("{}: dynamic rotary positions need more than 2 columns of a head", json.source());
      break;
    case RopeType::yarn:
      rope.factor = factor(ratio);
      rope.attention_factor = yarn_attention_factor(json, rope.factor);
      rope.beta_fast = positive(json.number("beta_fast", 32), "beta_fast", json.source());
      rope.beta_slow = positive(json.number("beta_slow", 1), "beta_slow", json.source());
      rope.truncate = json.flag("truncate", true);
      break;
    case RopeType::longrope:
      rope.factor = factor(ratio);
      rope.attention_factor =
          longrope_attention_factor(json, rope.factor, rope.original_max_position_embeddings);
      rope.short_factor = json.factors("short_factor", width / 2);
      rope.long_factor = json.factors("long_factor", width / 2);
      break;
    case RopeType::llama3:
      rope.factor = factor({});
      rope.low_freq_factor = positive(json.number("low_freq_factor"), "low_freq_factor", json.source());
      rope.high_freq_factor = json.number("high_freq_factor");
      if (rope.high_freq_factor <= rope.low_freq_factor) {
        throw ConfigError("{}: high_freq_factor ({}) must be greater than low_freq_factor ({})",
                          json.source(), rope.high_freq_factor, rope.low_freq_factor);
      }
      break;
  }
  return rope;
}

void RopeParameters::write(nlohmann::json& config) const {
  for (const char* key : {"rope_parameters", "rope_scaling", "partial_rotary_factor"}) config.erase(key);
  config["rope_theta"] = theta;
  if (partial_rotary_factor != 1) config["partial_rotary_factor"] = partial_rotary_factor;
  if (type == RopeType::unchanged) return;
  nlohmann::json json = {{"rope_type", std::ranges::find(type_names, type, &TypeName::type)->name},
                         {"factor", factor}};
  if (type == RopeType::yarn || type == RopeType::longrope || type == RopeType::llama3)
    json["original_max_position_embeddings"] = original_max_position_embeddings;
  if (type == RopeType::yarn || type == RopeType::longrope) json["attention_factor"] = attention_factor;
  if (type == RopeType::yarn)
    json.update({{"beta_fast", beta_fast}, {"beta_slow", beta_slow}, {"truncate", truncate}});
  if (type == RopeType::longrope) json.update({{"short_factor", short_factor}, {"long_factor", long_factor}});
  if (type == RopeType::llama3)
    json.update({{"low_freq_factor", low_freq_factor}, {"high_freq_factor", high_freq_factor}});
  config["rope_scaling"] = std::move(json);
}

}  // namespace stretto
