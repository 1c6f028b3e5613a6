#include "stretto/trainer/records/logged_values.h"

#include <cmath>

#include "stretto/base/error.h"

namespace stretto::trainer {

void LoggedValues::add(const std::string& name, const LoggedValue& logged) {
  const auto& [value, weight, reduction, hidden] = logged;
  if (!std::isfinite(weight) || weight < 0)
    throw Error(
        "log(\"{}\", {}): the weight is {}; expected a finite number >= 0, the number of samples that the value stands for",
        name, value, weight);
  if (weight == 0) return;
  Value& sum = values_.try_emplace(name, Value{.reduction = reduction}).first->second;
  if (sum.reduction != reduction)
    throw ConfigError("log(\"{}\"): the name is logged both as a mean and as a sum; use two names", name);
  sum.mean.add(value, reduction == LogReduction::sum ? 1 : weight);
  sum.hidden |= hidden;
}

void LoggedValues::add(const LoggedValues& other) {
  for (const auto& [name, value] : other.values_) {
    Value& sum = values_[name];
    sum.mean.add(value.mean);
    sum.reduction = value.reduction;
    sum.hidden |= value.hidden;
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
  Metrics results;
  for (const auto& [name, value] : values_)
    results[name] = value.reduction == LogReduction::sum ? value.mean.sum : value.mean.mean();
  values_.clear();
  return results;
}

nlohmann::json LoggedValues::to_json() const {
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [name, value] : values_)
    values[name] = {value.mean.sum, value.mean.weight, value.hidden, value.reduction == LogReduction::sum};
  return values;
}

void LoggedValues::from_json(const nlohmann::json& values) {
  values_.clear();
  for (const auto& [name, value] : values.items())
    values_[name] = {
        .mean = {value.at(0), value.at(1)},
        .reduction = value.size() > 3 && value.at(3).get<bool>() ? LogReduction::sum : LogReduction::mean,
        .hidden = value.size() > 2 && value.at(2).get<bool>()};
}

}  // namespace stretto::trainer
