#include "stretto/trainer/records/logged_values.h"

#include <cmath>

#include "stretto/base/error.h"

namespace stretto {

void LoggedValues::add(const std::string& name, double value, double weight, bool hidden) {
  if (!std::isfinite(weight) || weight < 0)
    throw Error(
        "log(\"{}\", {}): the weight is {}; expected a finite number >= 0, the number of samples that the value stands for",
        name, value, weight);
  if (weight == 0) return;
  Sum& sum = sums_[name];
  sum.value += weight * value;
  sum.weight += weight;
  sum.hidden |= hidden;
}

void LoggedValues::add(const LoggedValues& other) {
  for (const auto& [name, sum] : other.sums_) {
    sums_[name].value += sum.value;
    sums_[name].weight += sum.weight;
    sums_[name].hidden |= sum.hidden;
  }
}

// CBOR preserves every bit, and NaN.
void LoggedValues::collect(Group& group) {
  if (group.size() == 1) return;
  const auto bytes = nlohmann::json::to_cbor(to_json());
  const auto of_ranks = group.all_gather_bytes({bytes.begin(), bytes.end()});
  sums_.clear();
  if (group.rank() != 0) return;
  for (const std::string& of_rank : of_ranks) {
    LoggedValues values;
    values.from_json(nlohmann::json::from_cbor(of_rank));
    add(values);
  }
}

std::set<std::string> LoggedValues::hidden() const {
  std::set<std::string> names;
  for (const auto& [name, sum] : sums_) {
    if (sum.hidden) names.insert(name);
  }
  return names;
}

Metrics LoggedValues::take() {
  Metrics means;
  for (const auto& [name, sum] : sums_) means[name] = sum.value / sum.weight;
  sums_.clear();
  return means;
}

nlohmann::json LoggedValues::to_json() const {
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [name, sum] : sums_) values[name] = {sum.value, sum.weight, sum.hidden};
  return values;
}

void LoggedValues::from_json(const nlohmann::json& values) {
  sums_.clear();
  for (const auto& [name, sum] : values.items())
    sums_[name] = {sum.at(0), sum.at(1), sum.size() > 2 && sum.at(2).get<bool>()};
}

}  // namespace stretto
