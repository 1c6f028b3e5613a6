#include "stretto/trainer/records/logged_values.h"

#include <cmath>

#include "stretto/base/error.h"

namespace stretto::trainer {

void LoggedValues::add(const std::string& name, double value, double weight, bool hidden) {
  if (!std::isfinite(weight) || weight < 0)
    throw Error(
        "log(\"{}\", {}): the weight is {}; expected a finite number >= 0, the number of samples that the value stands for",
        name, value, weight);
  if (weight == 0) return;
  Value& logged = values_[name];
  logged.mean.add(value, weight);
  logged.hidden |= hidden;
}

void LoggedValues::add(const LoggedValues& other) {
  for (const auto& [name, value] : other.values_) {
    values_[name].mean.add(value.mean);
    values_[name].hidden |= value.hidden;
  }
}

// CBOR preserves every bit, and NaN.
void LoggedValues::collect(const Mesh& mesh) {
  Group& group = mesh.group(Axes::data);
  if (group.size() == 1) return;
  const auto bytes = nlohmann::json::to_cbor(to_json());
  const auto of_ranks = group.all_gather_bytes({bytes.begin(), bytes.end()});
  values_.clear();
  if (group.rank() != 0) return;
  for (const std::string& of_rank : of_ranks) {
    LoggedValues values;
    values.from_json(nlohmann::json::from_cbor(of_rank));
    add(values);
  }
}

std::set<std::string> LoggedValues::hidden() const {
  std::set<std::string> names;
  for (const auto& [name, value] : values_) {
    if (value.hidden) names.insert(name);
  }
  return names;
}

Metrics LoggedValues::take() {
  Metrics means;
  for (const auto& [name, value] : values_) means[name] = value.mean.mean();
  values_.clear();
  return means;
}

nlohmann::json LoggedValues::to_json() const {
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [name, value] : values_) values[name] = {value.mean.sum, value.mean.weight, value.hidden};
  return values;
}

void LoggedValues::from_json(const nlohmann::json& values) {
  values_.clear();
  for (const auto& [name, value] : values.items())
    values_[name] = {{value.at(0), value.at(1)}, value.size() > 2 && value.at(2).get<bool>()};
}

}  // namespace stretto::trainer
