#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "stretto/base/enum_names.h"

namespace stretto {

// The kind of label of a text, which determines the loss of a sequence classification: problem_type in a
// Hugging Face config.json. One class, a number, or any number of classes.
enum class ProblemType { single_label_classification, regression, multi_label_classification };
constexpr auto names_of(ProblemType) {
  return std::to_array<std::string_view>(
      {"single_label_classification", "regression", "multi_label_classification"});
}

// Reads problem_type as transformers does: without one, a regression if there is a single label, else a
// classification. Throws ConfigError, which begins with `source`, for an unknown name.
ProblemType read_problem_type(const nlohmann::json& config, size_t labels, const std::string& source);

}  // namespace stretto
