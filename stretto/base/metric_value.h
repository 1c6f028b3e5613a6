#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace stretto {

// The value of a metric for JSON: a number of samples (total, or a name that ends with _total, as in SQuAD's
// scripts) is an integer; "nan", "inf" and "-inf" are strings, because JSON has no such numbers.
nlohmann::ordered_json metric_json(const std::string& name, double value);

// Parses a value of metric_json(); nullopt for anything else.
std::optional<double> metric_of_json(const nlohmann::ordered_json& value);

// The value for messages, after its name: "f1 81.4000", "HasAns_total 36".
std::string metric_text(const std::string& name, double value);

}  // namespace stretto
